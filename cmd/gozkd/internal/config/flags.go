package config

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
)

// setting is a value of a key and its origin.
type setting struct {
	key, value string
	from       Origin
}

// commandLine collects the result of parsing the command line.
type commandLine struct {
	inv      *Invocation // of its Config, only Memory is set
	settings []setting   // in order
	problems []Problem
}

// parseFlags adds the flags of serve to fs and parses the command line. Flags and the file may be
// in any order.
func parseFlags(fs *flag.FlagSet, args []string) (*Invocation, []setting, []Problem) {
	l := &commandLine{inv: new(Invocation)}
	l.addFlags(fs)
	version := fs.Bool("version", false, "")
	words, err := cli.ParseFlags(fs, l.javaProperties(args))
	switch {
	case errors.Is(err, flag.ErrHelp):
		l.inv.Command = ShowHelp
		return l.inv, nil, nil
	case err != nil:
		l.problem("command line", err.Error())
		return l.inv, nil, l.problems
	case *version:
		l.inv.Command = ShowVersion
		return l.inv, nil, nil
	}
	switch words = l.command(words); len(words) {
	case 0:
	case 1:
		l.inv.File = words[0]
	default:
		l.problem("command line", "one zoo.cfg at most, not "+strings.Join(words, " "))
	}
	if l.inv.Config.Memory && slices.ContainsFunc(l.settings, func(s setting) bool { return s.from.Source == "--data-dir" }) {
		l.problem("--data-dir", "cannot be combined with --memory")
	}
	return l.inv, l.settings, l.problems
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
		l.set(key, value, "-o "+key)
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
	fs.BoolVar(&l.inv.Config.Memory, "memory", false, "")
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
		if s, ok := systemProperty(arg, Origin{Source: name, layer: fromFlags}); ok {
			l.settings = append(l.settings, s)
		}
	}
	return rest
}

// command reads the subcommand, if any, and returns the remaining words.
func (l *commandLine) command(words []string) []string {
	if len(words) == 0 {
		return nil
	}
	switch words[0] {
	case "serve":
		if words = words[1:]; len(words) > 0 && words[0] == "start-foreground" {
			words = words[1:]
		}
	case "start-foreground":
		words = words[1:]
	case "check-config":
		l.inv.Command = CheckConfig
		words = words[1:]
	}
	return words
}

func (l *commandLine) set(key, value, source string) {
	l.settings = append(l.settings, setting{key: key, value: trim(value), from: Origin{Source: source, layer: fromFlags}})
}

func (l *commandLine) problem(source, what string) {
	l.problems = append(l.problems, Problem{From: Origin{Source: source, layer: fromFlags}, What: what})
}
