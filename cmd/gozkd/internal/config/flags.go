package config

import (
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/internal/ensemble"
	"github.com/gozkd/gozkd/internal/memberid"
)

type setting struct {
	key, value string
	from       Origin
}

type commandLine struct {
	inv      *Invocation
	memory   bool
	settings []setting // in order
	problems []Problem
}

// parseFlags adds the flags of serve to fs, and parses flags and the file in any order.
func parseFlags(fs *flag.FlagSet, args []string) (_ *Invocation, memory bool, _ []setting, _ []Problem) {
	l := &commandLine{inv: new(Invocation)}
	l.addFlags(fs)
	version := fs.Bool("version", false, "")
	words, err := cli.ParseFlags(fs, l.javaProperties(args))
	switch {
	case errors.Is(err, flag.ErrHelp):
		l.inv.Command = ShowHelp
		return l.inv, false, nil, nil
	case err != nil:
		l.problem("command line", err.Error())
		return l.inv, false, nil, l.problems
	case *version:
		l.inv.Command = ShowVersion
		return l.inv, false, nil, nil
	}
	switch words = l.command(words); len(words) {
	case 0:
	case 1:
		l.inv.File = words[0]
	default:
		l.problem("command line", "one zoo.cfg at most, not "+strings.Join(words, " "))
	}
	if l.memory && slices.ContainsFunc(l.settings, func(s setting) bool { return s.from.Source == "--data-dir" }) {
		l.problem("--data-dir", "cannot be combined with --memory")
	}
	return l.inv, l.memory, l.settings, l.problems
}

// addFlags adds the flags of serve, which store their values in l.
func (l *commandLine) addFlags(fs *flag.FlagSet) {
	for name, key := range map[string]string{
		"data-dir": "dataDir", "id": "myid", "client-port": "clientPort", "client-address": "clientPortAddress", "log-level": "gozkd.logLevel",
	} {
		fs.Func(name, "", func(v string) error {
			l.set(key, v, "--"+name)
			return nil
		})
	}
	fs.Func("o", "", func(v string) error {
		key, value, ok := strings.Cut(v, "=")
		if key = trim(key); !ok || key == "" {
			return errors.New("must be KEY=VALUE")
		}
		l.set(key, value, "-o")
		return nil
	})
	fs.Func("ensemble", "", func(v string) error {
		n, err := strconv.Atoi(trim(v))
		if err != nil || n < 1 || n > MaxEnsemble {
			l.problem("--ensemble", fmt.Sprintf("is %q; allowed: a whole number from 1 to %d", v, MaxEnsemble))
		}
		l.inv.Ensemble = n
		return nil
	})
	fs.Func("faults-port", "", func(string) error {
		l.problem("--faults-port", "is a flag of gozkd-testkit, the servers for tests: run gozkd-testkit --faults-port PORT")
		return nil
	})
	fs.BoolVar(&l.memory, "memory", false, "")
	fs.StringVar(&l.inv.PortFile, "port-file", "", "")
	fs.BoolVar(&l.inv.LogJSON, "log-json", false, "")
}

// javaProperties adds the settings of -Dkey=value and returns the other arguments.
func (l *commandLine) javaProperties(args []string) (rest []string) {
	for _, arg := range args {
		property, ok := strings.CutPrefix(arg, "-D")
		if !ok {
			rest = append(rest, arg)
			continue
		}
		name, _, _ := strings.Cut(arg, "=")
		if name == "-D" {
			l.problem(arg, "names no key; must be -DKEY=VALUE without spaces")
			continue
		}
		l.inv.Properties = append(l.inv.Properties, property)
		if s, ok := systemProperty(arg, Origin{Source: "-D", layer: fromFlags}); ok {
			l.settings = append(l.settings, s)
		}
	}
	return rest
}

// command reads the subcommand, if any, and returns the remaining words.
func (l *commandLine) command(words []string) []string {
	if len(words) > 0 && words[0] == "check-config" {
		l.inv.Command = CheckConfig
		return words[1:]
	}
	for _, name := range []string{"serve", "start-foreground"} {
		if len(words) > 0 && words[0] == name {
			words = words[1:]
		}
	}
	return words
}

func (l *commandLine) set(key, value, source string) {
	l.settings = append(l.settings, setting{key: key, value: trim(value), from: Origin{Source: source, layer: fromFlags}})
}

func (l *commandLine) problem(source, what string) {
	l.problems = append(l.problems, Problem{From: Origin{Source: source, layer: fromFlags}, What: what})
}

// MaxEnsemble is the largest value of --ensemble.
const MaxEnsemble = ensemble.MaxMembers

// ensembleDefaults replace the defaults of these keys for an ensemble in one process.
var ensembleDefaults = []struct{ key, value string }{
	{"clientPortAddress", "127.0.0.1"},
	{"tickTime", "500"}, // elections take a fraction of a tick, and sessions last two ticks at least
	{"maxSessionTimeout", "3600000"},
	{"maxClientCnxns", "0"},
	{"4lw.commands.whitelist", "*"},
}

// ensembleFlag adds the defaults of --ensemble below all other settings. It returns false if
// settings identify this server as a member of another ensemble, which is a problem.
func (r *resolver) ensembleFlag(inv *Invocation) bool {
	for _, d := range ensembleDefaults {
		if _, set := r.won[d.key]; !set {
			r.set(setting{key: d.key, value: d.value, from: Origin{Source: "a default of --ensemble", layer: fromNowhere}})
		}
	}
	before := len(r.problems)
	if lines := r.serverLines(); len(lines) > 0 {
		r.conflict(inv, "%s is set (%s), and the members of --ensemble find each other in this process: remove all server lines", lines[0].key, lines[0].from)
	}
	if w, ok := r.won["myid"]; ok {
		r.conflict(inv, "%s is %s (%s), and the members of --ensemble are numbered from 1: remove it", w.key, w.value, w.from)
	}
	return len(r.problems) == before
}

// checkEnsemble refuses an ensemble that the resolved Config does not allow.
func (r *resolver) checkEnsemble(inv *Invocation, c *Config) {
	if inv.Ensemble > 1 {
		r.ensembleKeys(c)
	}
	if c.SSLQuorum {
		r.conflict(inv, "sslQuorum is set, and its members find each other in this process, without TLS: remove it")
	}
	if c.ServesTLS() {
		r.conflict(inv, "secureClientPort or client.portUnification is set, and its members serve no TLS: remove them")
	}
	if c.MyID != 0 {
		r.conflict(inv, "%s says that this is server %d, and the members of --ensemble are numbered from 1: use another directory",
			filepath.Join(c.Server.Dir, "myid"), memberid.Number(c.MyID))
	}
	r.noEffect(c.Archive.URL != "", "gozkd.archive.url", ": the members of --ensemble are not archived")
	if last := c.ClientPort + inv.Ensemble - 1; c.ClientPort != 0 && last > 65535 {
		r.conflict(inv, "clientPort is %d, so the client ports are up to %d: set it to 0, or to %d at most", c.ClientPort, last, 65536-inv.Ensemble)
	}
}

// conflict adds the problem that --ensemble and another setting exclude each other.
func (r *resolver) conflict(inv *Invocation, format string, args ...any) {
	r.problem(Origin{Source: "--ensemble", layer: fromFlags}, "", "is %d, but %s, or omit --ensemble", inv.Ensemble, fmt.Sprintf(format, args...))
}

// Usage is the beginning of Help, printed after a wrong command line.
const Usage = `usage: gozkd [serve] [flags] [zoo.cfg]
       gozkd check-config [flags] [zoo.cfg]
       gozkd COMMAND [flags] ...
       gozkd help [COMMAND] | --version
`

// Help is the output of --help.
const Help = Usage + `
gozkd is a coordination server for ZooKeeper clients. It reads zoo.cfg from the command line or from
the directory ZOOCFGDIR or ZOO_CONF_DIR. Without a zoo.cfg it keeps its data in ./` + DefaultDataDir + `, and
serves on 127.0.0.1:2181 unless there are server lines. Flags override zoo.cfg. zoo.cfg overrides -D
properties in JVMFLAGS and SERVER_JVMFLAGS, and the variables of ZooKeeper's container images.

commands:
  serve          run a server until SIGINT or SIGTERM (the default): a member of an ensemble if there
                 are several server.N lines, otherwise a standalone server; SIGHUP reloads the
                 configuration
  check-config   print the configuration that serve would use, as a zoo.cfg, and its warnings
  cli            ZooKeeper's shell, zkCli.sh, with additions
  top            show an ensemble live
  status         print the role of a server, and whether the ensemble is healthy
  ruok           report with the exit status whether a server is alive
  admin          run an admin command of a server: end a session, hand over leadership, reload, ...
  why            say why a session ended, or an ephemeral znode is gone
  backup         copy the data of a server
  restore        found a new ensemble from a backup
  verify         check an archive of the log, and print which moments can be restored
  standby        follow an archive at another site, serve reads, and found a new ensemble from it
  import         found a new ensemble from the data of stopped ZooKeeper servers
  migrate        follow a running ZooKeeper ensemble, and found a new ensemble when it is stopped
  mirror         copy a subtree to another ensemble while both run, and follow its changes
  export         write a snapshot that ZooKeeper starts from
  inspect        describe a data directory; print its log, znodes, sessions, or sums of subtrees
  history        print who changed a znode and when, from the log in a data directory
  init           prepare a data directory, as zkServer-initialize.sh
  start-foreground, version, print-cmd
                 as zkServer.sh. gozkd can replace ZooKeeper's scripts: call it by their name through a
                 symbolic link, or give the name first: gozkd zkServer.sh start-foreground

flags of serve:
  --memory               keep all data in memory; it is lost when the process exits
  --data-dir DIR         data directory (dataDir)
  --id N                 number of this server among the server lines (myid); default: the file DIR/myid
  --client-port PORT     port for clients; 0: any free port (clientPort)
  --client-address HOST  address to listen on for clients (clientPortAddress)
  --port-file FILE       while it serves, a file with one JSON line: {"client":"127.0.0.1:2181"}
  --ensemble N           for a first look: run an ensemble of N servers, 1 to 9, in this process, with
                         consecutive ports and the data in DIR/1, DIR/2, ...
  --log-level LEVEL      trace, debug, info, warn, error or off (gozkd.logLevel)
  --log-json             log one JSON object per line
  -o KEY=VALUE           set any key of zoo.cfg; may be repeated; also -DKEY=VALUE
  --version              print the version
  --help                 print this text

examples:
  gozkd                                              try it: 127.0.0.1:2181, data in ./` + DefaultDataDir + `
  gozkd /etc/zookeeper/conf/zoo.cfg                  use an existing ZooKeeper configuration
  gozkd --memory --client-port 0 --port-file p.json  a server for a test; with --ensemble 3, three
  gozkd -o 4lw.commands.whitelist=* -o tickTime=500  set keys of zoo.cfg

Exit status: 0 after a clean stop, 1 after a failure, 2 if the command line, or a setting of serve, is wrong.
All keys: docs/reference/configuration.md.
`
