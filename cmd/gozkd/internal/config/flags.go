package config

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Usage is the beginning of Help, printed after a wrong command line.
const Usage = `usage: gozkd [serve] [flags] [zoo.cfg]
       gozkd check-config [flags] [zoo.cfg]
       gozkd COMMAND [flags] ...
       gozkd --help | --version
`

// Help is the output of --help.
const Help = Usage + `
gozkd is a coordination server for ZooKeeper clients. Without a zoo.cfg, here or in the folder ZOOCFGDIR or ZOO_CONF_DIR, it
serves on 127.0.0.1:2181 and keeps its data in ./` + DefaultDataDir + `. Flags win over zoo.cfg; zoo.cfg wins over -D properties in
JVMFLAGS and SERVER_JVMFLAGS, and over the variables of ZooKeeper's container images.

commands:
  serve          run a server until SIGINT or SIGTERM (the default): one of an ensemble if there are several
                 server.N lines, else a standalone one; SIGHUP reads the configuration again
  check-config   print the configuration that serve would run with, as a zoo.cfg, and its warnings
  cli            the shell: zkCli.sh, and more
  top            a live view of the ensemble
  status         what a server is, and whether the ensemble is well
  ruok           whether a server serves, as exit status
  backup         copy the data of a server
  restore        found a new ensemble on a copy
  inspect        look into the data of a server that does not run
  init           write the number of this server into its data directory: zkServer-initialize.sh
  start-foreground, version, print-cmd
                 as zkServer.sh has them. By that name, of a symbolic link or as the first word, its words are understood:
                 zkServer.sh start-foreground, zkServer.sh status, zkCli.sh

flags of serve:
  --memory               keep all data in memory: nothing survives the process
  --data-dir DIR         where the data is (dataDir)
  --id N                 which of the server lines this server is (myid); else DIR/myid says so
  --client-port PORT     port for clients; 0 means any free one (clientPort)
  --client-address HOST  address to listen on for clients (clientPortAddress)
  --port-file FILE       once ready, write one JSON line with the addresses: {"client":"127.0.0.1:2181"}
  --ensemble N           for a first look: run an ensemble of N servers, 1 to 9, in this process, with consecutive
                         ports and the data in DIR/1, DIR/2, ...
  --log-level LEVEL      trace, debug, info, warn, error or off (gozkd.logLevel)
  --log-json             log one JSON object per line
  -o KEY=VALUE           any key of zoo.cfg; may be given again and again; also -DKEY=VALUE
  --version              print the version
  --help                 print this text

examples:
  gozkd                                              try it: 127.0.0.1:2181, data in ./` + DefaultDataDir + `
  gozkd /etc/zookeeper/conf/zoo.cfg                  what ZooKeeper is configured with
  gozkd --memory --client-port 0 --port-file p.json  a server for a test; with --ensemble 3, three
  gozkd -o 4lw.commands.whitelist=* -o tickTime=500  any key of zoo.cfg

Exit status: 0 after a clean stop, 1 when the server can't start or fails, 2 when the command line is wrong.
All keys: docs/reference/configuration.md.
`

// setting is a value of a key and its origin.
type setting struct {
	key, value string
	from       Origin
}

// parseFlags reads the command line. Only Config.Memory of the invocation's Config is set; what else configures
// the server is returned as settings, in order. Flags and the file may come in any order.
func parseFlags(args []string) (*Invocation, []setting, []Problem) {
	inv := new(Invocation)
	var settings []setting
	var problems []Problem
	bad := func(source, what string) {
		problems = append(problems, Problem{From: Origin{Source: source, layer: fromFlags}, What: what})
	}
	flags := flag.NewFlagSet("gozkd", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints problems
	flags.Usage = func() {}
	forKey := func(name, key string) {
		flags.Func(name, "", func(v string) error {
			settings = append(settings, setting{key: key, value: trim(v), from: Origin{Source: "--" + name, layer: fromFlags}})
			return nil
		})
	}
	flags.BoolVar(&inv.Config.Memory, "memory", false, "")
	forKey("data-dir", "dataDir")
	forKey("id", "myid")
	forKey("client-port", "clientPort")
	forKey("client-address", "clientPortAddress")
	flags.StringVar(&inv.PortFile, "port-file", "", "")
	number := func(name string, least, most int, set func(int)) {
		flags.Func(name, "", func(v string) error {
			n, err := strconv.Atoi(trim(v))
			if err != nil || n < least || n > most {
				bad("--"+name, fmt.Sprintf("is %q; allowed: a whole number from %d to %d", v, least, most))
				return nil
			}
			set(n)
			return nil
		})
	}
	number("ensemble", 1, MaxEnsemble, func(n int) { inv.Ensemble = n })
	flags.Func("faults-port", "", func(string) error {
		bad("--faults-port", "is a flag of gozkd-testkit, the servers for tests: run gozkd-testkit --faults-port PORT")
		return nil
	})
	forKey("log-level", "gozkd.logLevel")
	flags.BoolVar(&inv.LogJSON, "log-json", false, "")
	version := flags.Bool("version", false, "")
	flags.Func("o", "", func(v string) error {
		k, value, ok := strings.Cut(v, "=")
		if k = trim(k); !ok || k == "" {
			return errors.New("wanted is KEY=VALUE")
		}
		settings = append(settings, setting{key: k, value: trim(value), from: Origin{Source: "-o " + k, layer: fromFlags}})
		return nil
	})

	rest := slices.DeleteFunc(slices.Clone(args), func(word string) bool { // as for java
		if !strings.HasPrefix(word, "-D") {
			return false
		}
		name, _, _ := strings.Cut(word, "=")
		if name == "-D" {
			bad(word, "names no key; wanted is -DKEY=VALUE, in one word")
			return true
		}
		inv.Properties = append(inv.Properties, word[len("-D"):])
		if s, ok := systemProperty(word, Origin{Source: name, layer: fromFlags}); ok {
			settings = append(settings, s)
		}
		return true
	})
	var words []string
	for {
		if err := flags.Parse(rest); errors.Is(err, flag.ErrHelp) {
			inv.Command = ShowHelp
			return inv, nil, nil
		} else if err != nil {
			bad("command line", err.Error())
			return inv, nil, problems
		}
		rest = flags.Args()
		if len(rest) == 0 {
			break
		}
		words, rest = append(words, rest[0]), rest[1:]
	}
	if *version {
		inv.Command = ShowVersion
		return inv, nil, nil
	}
	if len(words) > 0 {
		switch words[0] {
		case "serve":
			words = words[1:]
			if len(words) > 0 && words[0] == "start-foreground" {
				words = words[1:]
			}
		case "start-foreground":
			words = words[1:]
		case "check-config":
			inv.Command = CheckConfig
			words = words[1:]
		}
	}
	switch len(words) {
	case 0:
	case 1:
		inv.File = words[0]
	default:
		bad("command line", "one zoo.cfg at most, not "+strings.Join(words, " "))
	}
	if i := slices.IndexFunc(settings, func(s setting) bool { return s.from.Source == "--data-dir" }); i >= 0 && inv.Config.Memory {
		bad("--data-dir", "has no place beside --memory")
	}
	return inv, settings, problems
}
