package config

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/serverlist"
)

// DefaultDataDir is the data directory without a zoo.cfg, in the working directory.
const DefaultDataDir = "gozkd-data"

// Invocation is a command line, besides its settings: those are in a Config.
type Invocation struct {
	Command Command
	// File is the path of the zoo.cfg that was read, or empty.
	File string
	// Ensemble is the number of members to run in this process; 0: a single server.
	Ensemble int
	// PortFile is the file to write the addresses to, or empty.
	PortFile string
	// LogJSON selects JSON for the log, one object per line.
	LogJSON bool
	// Properties are all -D properties of the command line, SERVER_JVMFLAGS and JVMFLAGS, as
	// name=value. If a name repeats, the last property counts.
	Properties []string
	// Warnings are about settings without effect. Each names key, file and line.
	Warnings []string

	won map[string]won // by canonical key
}

// Locate adds where a key is set to an error that begins with the key, as those of files do.
func (inv *Invocation) Locate(err error) error {
	key, _, _ := strings.Cut(err.Error(), ": ")
	if w, set := inv.won[key]; set {
		return fmt.Errorf("%s: %w", w.from, err)
	}
	return err
}

// Command is the subcommand.
type Command int

// The subcommands.
const (
	Serve Command = iota
	CheckConfig
	ShowHelp
	ShowVersion
)

// Load reads the command line without the program's name, the zoo.cfg that it names, and the
// environment. If the command line names no zoo.cfg, Load reads the zoo.cfg in ZOOCFGDIR or
// ZOO_CONF_DIR, if there is any. getenv looks up an environment variable, as os.Getenv does. names
// are the names of all environment variables; without them, variables that have a key in their name
// have no effect, and unknown ones are not reported.
//
// Load writes nothing. The Config is valid for Serve and CheckConfig, and zero for other commands.
// The error is always an *Error with all problems. Also after an error, the Warnings are complete.
func Load(args []string, getenv func(string) string, names []string) (*Invocation, Config, error) {
	return LoadFlags(flag.NewFlagSet("gozkd", flag.ContinueOnError), args, getenv, names, nil)
}

// LoadFlags is Load for a command line that may contain the flags of fs as well. For a standby, dir
// returns its data directory, after the flags are set, and keys of the data directory and of the
// ensemble have no effect; otherwise dir is nil.
func LoadFlags(
	fs *flag.FlagSet, args []string, getenv func(string) string, names []string, dir func() string,
) (*Invocation, Config, error) {
	inv, memory, fromCommandLine, problems := parseFlags(fs, args)
	if inv.Command == ShowHelp || inv.Command == ShowVersion {
		return inv, Config{}, nil // even if other flags are wrong
	}
	if len(problems) > 0 {
		return inv, Config{}, &Error{Problems: problems}
	}
	if !memory && inv.Ensemble == 0 {
		inv.File = findFile(inv.File, getenv)
	}
	r := newResolver()
	r.flagProperties = inv.Properties
	outside := container{r: r, getenv: getenv, names: names, image: getenv(confDir) != "" && inv.File == "" && inv.Ensemble == 0}
	outside.read(inv.File)
	r.environment(outside)
	if inv.File != "" {
		r.file(inv.File)
	}
	for _, s := range fromCommandLine {
		r.set(s)
	}
	r.scripts(inv.File)
	if dir != nil {
		r.standby(dir())
	}
	if inv.Ensemble > 0 && !r.ensembleFlag(inv) {
		return inv, Config{}, &Error{Problems: r.problems}
	}
	c := r.resolve(memory)
	if inv.Ensemble > 0 {
		r.checkEnsemble(inv, &c)
	}
	r.adminServer(inv, &c)
	r.equalPorts(&c)
	r.oddDirectories(&c)
	inv.won, inv.Warnings, inv.Properties = r.won, r.warnings, append(r.properties, inv.Properties...)
	if len(r.problems) > 0 {
		return inv, c, &Error{Problems: r.problems}
	}
	return inv, c, nil
}

// LocalServer returns a cli.Env's Server. names are the names of all environment variables.
func LocalServer(
	getenv func(string) string, names []string,
) func(fs *flag.FlagSet, args []string) (cli.Server, error) {
	return func(fs *flag.FlagSet, args []string) (cli.Server, error) {
		if fs == nil {
			fs = flag.NewFlagSet("serve", flag.ContinueOnError)
		}
		inv, c, err := LoadFlags(fs, args, getenv, names, nil)
		return cli.Server{
			Help: inv.Command == ShowHelp, One: inv.Command == Serve && inv.Ensemble == 0 && !c.Memory,
			ID: c.MyID, Members: len(c.Members), Dir: c.Server.Dir, LogDir: c.Server.LogDir, TokenFile: c.AdminTokenFile,
		}, err
	}
}

// findFile returns the zoo.cfg to read, or "". Like zkServer.sh and the images, findFile looks for
// a name without a directory in ZOOCFGDIR or ZOO_CONF_DIR as well.
func findFile(named string, getenv func(string) string) string {
	dir, name := cmp.Or(getenv("ZOOCFGDIR"), getenv(confDir)), cmp.Or(getenv("ZOOCFG"), "zoo.cfg")
	exists := func(path string) bool { _, err := os.Stat(path); return err == nil }
	switch {
	case named == "" && dir != "" && exists(filepath.Join(dir, name)):
		return filepath.Join(dir, name)
	case named != "" && dir != "" && filepath.Base(named) == named && !exists(named) && exists(filepath.Join(dir, named)):
		return filepath.Join(dir, named)
	}
	return named
}

// adminServer disables the admin server where several servers would compete for its port.
func (r *resolver) adminServer(inv *Invocation, c *Config) {
	said := slices.ContainsFunc(r.order, func(key string) bool {
		return r.won[key].from.layer > fromImage && (strings.HasPrefix(key, "admin.") || strings.HasPrefix(key, "gozkd.admin.") || strings.HasPrefix(key, "gozkd.web") || key == "gozkd.pprof")
	})
	switch {
	case said || !c.AdminEnabled:
	case c.Memory && inv.Ensemble == 0:
		c.AdminOmitted = "--memory"
	case c.ClientPort == 0:
		c.AdminOmitted = "client port 0"
	case inv.PortFile != "":
		c.AdminOmitted = "--port-file"
	}
	c.AdminEnabled = c.AdminEnabled && c.AdminOmitted == ""
	if inv.Ensemble == 0 {
		return
	}
	if _, secure := c.AdminTLS(); secure && c.AdminEnabled {
		w := r.won[adminServer]
		r.warn(w.from, adminServer, "the members of --ensemble have no admin server with TLS, and so none")
		c.AdminEnabled = false
	}
	r.noEffect(c.Prometheus(), "metricsProvider.className", ": the members of --ensemble have no endpoint for Prometheus")
	c.MetricsProvider = defaultProvider
}

// ownPort is a port that this server opens, and the key that names it.
type ownPort struct {
	key, host string
	port      int // 0: a free one, or none
}

// shellMarks matches a value that was meant for a shell or has a comment.
var shellMarks = regexp.MustCompile(`^~|["'$]|%.*%| #`)

// leastDataLimit is twice what a server without data takes.
const leastDataLimit = 16 << 20

// equalPorts warns of ports that this server would open twice.
func (r *resolver) equalPorts(c *Config) {
	ports := []ownPort{
		{"clientPort", c.ClientPortAddress, c.ClientPort},
		{"secureClientPort", c.SecureClientPortAddress, c.SecureClientPort},
	}
	for address := range strings.SplitSeq(c.PeerListenAddress(), "|") {
		host, port, _ := net.SplitHostPort(address)
		number, _ := strconv.Atoi(port) // 0: there is no such port
		ports = append(ports, ownPort{fmt.Sprintf("server.%d", memberid.Number(c.MyID)), host, number})
	}
	if c.AdminEnabled {
		ports = append(ports, ownPort{"admin.serverPort", c.AdminAddress, c.AdminPort})
	}
	if c.Prometheus() {
		ports = append(ports, ownPort{"metricsProvider.httpPort", c.MetricsHost, c.MetricsPort})
	}
	for i, p := range ports {
		effect := "the server will not start"
		if p.key == "admin.serverPort" {
			effect = "one of them will not be served"
		}
		for _, other := range ports[i+1:] {
			shared := p.host == other.host || serverlist.AllAddresses(p.host) || serverlist.AllAddresses(other.host)
			if p.port <= 0 || p.port != other.port || !shared || p.key == other.key {
				continue
			}
			p := p
			if _, set := r.won[p.key]; !set {
				p, other = other, p
			}
			r.warn(r.won[p.key].from, p.key, "is %d, and so is %s: %s; choose another port for one of them",
				p.port, other.key, effect)
		}
	}
}

// oddDirectories warns of names that were meant for a shell, or for Windows, and of a missing
// directory of the archive, which a late mount may still bring.
func (r *resolver) oddDirectories(c *Config) {
	if err := store.Missing(c.Archive.URL); err != nil {
		w := r.won["gozkd.archive.url"]
		r.warn(w.from, w.key, "%s", strings.TrimPrefix(err.Error(), "archive: "))
	}
	for _, key := range []string{"dataDir", "dataLogDir"} {
		w := r.won[key]
		if shellMarks.MatchString(w.value) {
			r.warn(w.from, key, "is %s, to the letter: no shell replaces ~, variables and quotes, "+
				"and a comment needs a line of its own", w.value)
		}
		relative := strings.HasPrefix(w.value, "..") && len(w.value) > 2
		if (relative || len(w.value) > 2 && w.value[1] == ':') && !strings.ContainsAny(w.value, `/\`) {
			r.warn(w.from, key, `is %s: a \ in this file is an escape; write \\ or /`, w.value)
		}
	}
}

// readFile reads a properties file, or adds a problem, which says who named the file.
func (r *resolver) readFile(path, named string) []property {
	data, err := os.ReadFile(path)
	if info, _ := os.Stat(path); err != nil && info != nil && info.IsDir() {
		err = errors.New("is a directory: name a file; --data-dir names the directory of the data")
	} else if bytes.IndexByte(data, 0) >= 0 {
		err = errors.New("is no text in UTF-8; a backup is for gozkd restore, an archive is named by its URL")
	}
	if err != nil {
		r.unreadable(path, err, named)
		return nil
	}
	props, problems := readProperties(path, data)
	r.problems = append(r.problems, problems...)
	return props
}

// unreadable adds the problem of an unreadable file.
func (r *resolver) unreadable(path string, err error, named string) {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err // the problem contains the path already
	}
	r.problem(Origin{Source: path}, "", "cannot be read: %v%s", err, named)
}

// Origin is the place of a setting.
type Origin struct {
	// Source is a file, an environment variable, or a flag such as "--client-port".
	Source string
	// Line is the line in the file, from 1; 0 if there are no lines.
	Line int

	layer layer
}

// layer orders the origins: a higher layer overrides a lower layer.
type layer int

const (
	fromNowhere layer = iota
	fromImage
	fromEnvironment
	fromFile
	fromFlags
)

func (o Origin) String() string {
	if o.Line == 0 {
		return o.Source
	}
	return fmt.Sprintf("%s:%d", o.Source, o.Line)
}

// Problem is a reason not to start.
type Problem struct {
	// From is the place of the setting; zero if a setting is missing.
	From Origin
	// Key is the key as written; empty if the problem concerns a line or flag as a whole.
	Key string
	// What describes the problem and the valid values.
	What string
	// Missing is set if a file or directory does not exist, which a late mount may still bring.
	Missing bool

	group string // of the key, or empty
}

func (p Problem) String() string {
	parts := []string{p.From.String(), p.Key, p.What}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ": ")
}

// Error reports all problems of a configuration.
type Error struct {
	// Problems is not empty.
	Problems []Problem
}

// Error returns the problems, one per line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Missing reports whether the same configuration may work later, because all that is missing are
// files that it names. A missing configuration file is a problem without a key.
func (e *Error) Missing() bool {
	return !slices.ContainsFunc(e.Problems, func(p Problem) bool { return !p.Missing || p.Key == "" })
}

// Usage reports whether the command line is wrong; the exit status is 2 then.
func (e *Error) Usage() bool {
	return slices.ContainsFunc(e.Problems, func(p Problem) bool { return p.From.layer == fromFlags })
}
