package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// DefaultDataDir is where data goes without a zoo.cfg, below the working directory.
const DefaultDataDir = "gozkd-data"

// Invocation is what one start of the program was asked for.
type Invocation struct {
	// Command is what to do.
	Command Command
	// Config is resolved and valid for Serve and CheckConfig, and zero for the other commands.
	Config Config
	// File is the path of the zoo.cfg that was read, or empty.
	File string
	// Ensemble is how many servers are to run in this process as an ensemble; 0: one, as Config says.
	Ensemble int
	// PortFile is where to write the addresses once they are bound, or empty.
	PortFile string
	// LogJSON asks for one JSON object per log line.
	LogJSON bool
	// Properties are the -D words of the command line, SERVER_JVMFLAGS and JVMFLAGS, as name=value, whatever they are for; the last of a name counts.
	Properties []string
	// Warnings are settings that have no effect, each a sentence that names key, file and line.
	Warnings []string
}

// Command is what the program is to do.
type Command int

// The commands.
const (
	Serve Command = iota
	CheckConfig
	ShowHelp
	ShowVersion
)

// Load reads the command line (without the program's name), the zoo.cfg that it names, and the environment.
//
//	getenv  looks up an environment variable, as os.Getenv does
//	names   of all environment variables, if those that say nothing are to be warned of
//
// Without a zoo.cfg on the command line, that in the folder ZOOCFGDIR or ZOO_CONF_DIR counts, if there is one.
// It reads files and writes nothing. An error is always an *Error with every problem that was found; Warnings are
// complete then too.
func Load(args []string, getenv func(string) string, names []string) (*Invocation, error) {
	inv, fromCommandLine, problems := parseFlags(args)
	if inv.Command == ShowHelp || inv.Command == ShowVersion {
		return inv, nil // help is also for those whose other flags are wrong
	}
	if len(problems) > 0 {
		return inv, &Error{Problems: problems}
	}
	if !inv.Config.Memory && inv.Ensemble == 0 {
		inv.File = findFile(inv.File, getenv)
	}
	r := newResolver()
	outside := container{r: r, getenv: getenv, names: names, image: getenv(confDir) != "" && inv.File == "" && inv.Ensemble == 0}
	outside.read(inv.File)
	r.environment(outside)
	if inv.File != "" {
		r.file(inv.File)
	}
	for _, s := range fromCommandLine {
		r.set(s)
	}
	if inv.Ensemble > 0 && !r.ensembleFlag(inv) {
		return inv, &Error{Problems: r.problems}
	}
	inv.Config = r.resolve(inv.Config.Memory)
	if inv.Ensemble > 0 {
		r.checkEnsemble(inv)
	}
	r.adminServer(inv)
	inv.Warnings, inv.Properties = r.warnings, append(r.properties, inv.Properties...)
	if len(r.problems) > 0 {
		return inv, &Error{Problems: r.problems}
	}
	return inv, nil
}

// findFile returns the zoo.cfg to read, or "". A name without a folder is also looked for where zkServer.sh looks, and where the
// images have it.
func findFile(named string, getenv func(string) string) string {
	dir, name := getenv("ZOOCFGDIR"), getenv("ZOOCFG")
	if dir == "" {
		dir = getenv(confDir)
	}
	if name == "" {
		name = "zoo.cfg"
	}
	exists := func(path string) bool { _, err := os.Stat(path); return err == nil }
	switch {
	case named == "" && dir != "" && exists(filepath.Join(dir, name)):
		return filepath.Join(dir, name)
	case named != "" && dir != "" && filepath.Base(named) == named && !exists(named) && exists(filepath.Join(dir, named)):
		return filepath.Join(dir, named)
	}
	return named
}

// adminServer settles whether there is an admin server where nobody said so: servers that are one of many on their machine do not fight
// for the port.
func (r *resolver) adminServer(inv *Invocation) {
	c := &inv.Config
	said := slices.ContainsFunc(r.order, func(key string) bool {
		return r.won[key].from.layer > fromImage && (strings.HasPrefix(key, "admin.") || key == "gozkd.pprof")
	})
	if inv.Ensemble > 0 {
		if w := r.won[adminServer]; w.key != "" && c.AdminEnabled {
			r.warn(w.from, w.key, "%s has no effect: the members of --ensemble have no admin server", w.value)
		}
		if w := r.won["metricsProvider.className"]; c.Prometheus() {
			r.warn(w.from, w.key, "%s has no effect: the members of --ensemble have no endpoint for Prometheus", w.value)
		}
		c.AdminEnabled, c.MetricsProvider = false, defaultProvider
		return
	}
	if !said && (c.Memory || c.ClientPort == 0 || inv.PortFile != "") {
		c.AdminEnabled = false
	}
}

// readFile reads a file of properties, or adds a problem.
func (r *resolver) readFile(path string) []property {
	data, err := os.ReadFile(path)
	if err != nil {
		r.unreadable(path, err)
		return nil
	}
	props, problems := readProperties(path, data)
	r.problems = append(r.problems, problems...)
	return props
}

// unreadable adds the problem of a file that can't be read.
func (r *resolver) unreadable(path string, err error) {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err // the path stands in the problem already
	}
	r.problem(Origin{Source: path}, "", "can't be read: %v", err)
}
