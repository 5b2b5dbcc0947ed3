// Command gozkd is a coordination server for ZooKeeper clients. See gozkd --help and docs/configuration.md.
//
// It exits with 0 after a clean stop, with 1 when it can't do what it was asked for, and with 2 when the command line
// is wrong.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/gozkd/gozkd/internal/config"
)

func main() {
	os.Exit(run(os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// run is main with its surroundings handed in; it returns the exit status.
func run(args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	say := func(words ...any) { _, _ = fmt.Fprintln(stderr, words...) } // when stderr fails there is nowhere left to say so
	inv, err := config.Load(args, getenv)
	for _, w := range inv.Warnings {
		say("gozkd: warning:", w)
	}
	if wrong := (*config.Error)(nil); errors.As(err, &wrong) {
		for _, p := range wrong.Problems {
			say("gozkd:", p)
		}
		if wrong.Usage() {
			say("\n" + config.Usage)
			return 2
		}
		return 1
	}
	switch inv.Command {
	case config.ShowHelp:
		_, err = io.WriteString(stdout, config.Help)
	case config.ShowVersion:
		_, err = fmt.Fprintln(stdout, version())
	case config.CheckConfig:
		_, err = io.WriteString(stdout, inv.Config.String())
	default:
		err = serve(inv, stderr)
	}
	if err != nil {
		say("gozkd:", err)
		return 1
	}
	return 0
}

// version names the module's version as the go command recorded it, and what built it for which system.
func version() string {
	v := "(unknown)"
	if info, ok := debug.ReadBuildInfo(); ok {
		v = info.Main.Version
	}
	return fmt.Sprintf("gozkd %s, %s, %s/%s", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
