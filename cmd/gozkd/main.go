// Command gozkd is a coordination server for ZooKeeper clients. See gozkd --help and docs/reference/configuration.md.
//
// It exits with 0 after a clean stop, with 1 when it can't do what it was asked for, and with 2 when the command line
// is wrong.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
)

func main() {
	env := cli.Env{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Environ: os.Environ, Interrupts: takeInterrupts}
	os.Exit(run(os.Args[0], os.Args[1:], env))
}

// run is main with its surroundings handed in; it returns the exit status. name is what the program was called as.
func run(name string, args []string, env cli.Env) int {
	args, ok := asGozkd(name, args)
	if !ok {
		_, _ = fmt.Fprintln(env.Err, zkServerUsage) // when Err fails there is nowhere left to say so
		return cli.Usage
	}
	if len(args) > 0 {
		command := commands[args[0]]
		if command == nil {
			command = serverWords[args[0]]
		}
		if command != nil {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return command(ctx, args[1:], env)
		}
	}
	say := func(words ...any) { _, _ = fmt.Fprintln(env.Err, words...) } // when Err fails there is nowhere left to say so
	if near, is := mistyped(args, env.Getenv); is {
		if near != "" {
			near = "; did you mean " + near + "?"
		}
		say("gozkd: " + args[0] + " is neither a command nor a file" + near + "\n\n" + config.Usage)
		return cli.Usage
	}
	load := func() (*config.Invocation, error) { return config.Load(args, env.Getenv, names(env)) }
	inv, err := load()
	for _, w := range inv.Warnings {
		say("gozkd: warning:", w)
	}
	if wrong := (*config.Error)(nil); errors.As(err, &wrong) {
		for _, p := range wrong.Problems {
			say("gozkd:", p)
		}
		if wrong.Usage() {
			say("\n" + config.Usage)
			return cli.Usage
		}
		return cli.Failed
	}
	switch inv.Command {
	case config.ShowHelp:
		_, err = io.WriteString(env.Out, config.Help)
	case config.ShowVersion:
		_, err = fmt.Fprintln(env.Out, cli.Version())
	case config.CheckConfig:
		_, err = io.WriteString(env.Out, inv.Config.String())
	default:
		err = serve(inv, load, env)
	}
	if err != nil {
		say("gozkd:", err)
		return cli.Failed
	}
	return cli.OK
}

// names returns the names of the environment's variables, sorted.
func names(env cli.Env) []string {
	if env.Environ == nil {
		return nil
	}
	var names []string
	for _, line := range env.Environ() {
		name, _, _ := strings.Cut(line, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
