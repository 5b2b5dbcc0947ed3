// Command gozkd is a coordination server for ZooKeeper clients, with its shell and operator's
// tools. See gozkd --help and docs/reference/configuration.md.
//
// The exit status is 0 after a clean stop, 1 after a failure, and 2 if the command line is wrong,
// or the configuration of serve: another start would fail as well.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"runtime/metrics"
	"runtime/pprof"
	"slices"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/memlimit"
)

func main() {
	env := cli.Env{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Environ: os.Environ,
		Interrupts: takeInterrupts, BeforeServe: slackenTimers,
	}
	os.Exit(run(os.Args[0], os.Args[1:], env))
}

// takeInterrupts implements cli.Env.Interrupts.
func takeInterrupts() (interrupts <-chan os.Signal, stop func()) {
	signal.Reset(os.Interrupt)
	c := make(chan os.Signal, 1) // a pending interrupt stands for all later interrupts
	signal.Notify(c, os.Interrupt)
	return c, func() { signal.Stop(c) }
}

// run executes the command line of a program that was called by name. It returns the exit status.
func run(name string, args []string, env cli.Env) int {
	name, args, env = withConfDir(name, args, env)
	env.Server = config.LocalServer(env.Getenv, env.Names())
	args, ok := asGozkd(name, args)
	if !ok {
		cli.Print(env.Err, zkServerUsage+"\n")
		return cli.Usage
	}
	if len(args) > 0 && args[0] == "help" { // gozkd help COMMAND
		args = append(slices.Clone(args[1:]), "--help")
	}
	if len(args) > 0 {
		command := commands[args[0]]
		if command == nil {
			command = zkServerCommands[args[0]]
		}
		if command != nil {
			if slices.Contains(outlasting, args[0]) {
				signal.Ignore(syscall.SIGPIPE)
			}
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return command(ctx, args[1:], env)
		}
	}
	if near, is := mistyped(args, env.Getenv); is {
		if near != "" {
			near = "; did you mean " + near + "?"
		}
		cli.Print(env.Err, "gozkd: "+args[0]+" is neither a command nor a file"+near+"\n\n"+config.Usage+"\n")
		return cli.Usage
	}
	load := func() (*config.Invocation, config.Config, error) {
		return config.Load(args, env.Getenv, env.Names())
	}
	if env.BeforeServe != nil {
		env.BeforeServe()
	}
	inv, c, err := load()
	for _, w := range inv.Warnings {
		cli.Print(env.Err, "gozkd: warning: "+w+"\n")
	}
	if wrong := (*config.Error)(nil); errors.As(err, &wrong) {
		for _, p := range wrong.Problems {
			_ = fail(env, errors.New(p.String()))
		}
		if wrong.Usage() {
			cli.Print(env.Err, "\n"+config.Usage+"\n")
		} else if inv.Command == config.CheckConfig || wrong.Missing() {
			return cli.Failed // files may come: a service manager tries again
		}
		return cli.Usage
	}
	switch inv.Command {
	case config.ShowHelp:
		return printTo(env, config.Help)
	case config.ShowVersion:
		return printTo(env, fmt.Sprintln(cli.Version()))
	case config.CheckConfig:
		log := hclog.New(&hclog.LoggerOptions{Name: "gozkd", Level: hclog.Warn, Output: env.Err, DisableTime: true})
		if err := openFiles(c, log); err != nil {
			return fail(env, inv.Locate(err))
		}
		return printTo(env, c.String())
	}
	if err := serve(inv, c, load, env); err != nil {
		return fail(env, inv.Locate(err))
	}
	return cli.OK
}

const (
	// gcHeadroom is the garbage that may accumulate while the heap is small.
	gcHeadroom = 12 << 20
	// A large heap may grow by a quarter: memory costs all the time, collections only with writes.
	gcLeastPercent = 25
	gcMostPercent  = 100
)

// answerQuit writes all stacks to w at each SIGQUIT until ctx ends, and goes on, as Java does.
func answerQuit(ctx context.Context, w io.Writer) {
	quit := make(chan os.Signal, 1)
	signal.Notify(quit, syscall.SIGQUIT)
	context.AfterFunc(ctx, func() { signal.Stop(quit); close(quit) }) // Stop returns after the last send
	// Ends with ctx. Nobody awaits it, as tuneGC.
	go func() {
		for range quit {
			_ = pprof.Lookup("goroutine").WriteTo(w, 2) // the reader of the log may be gone
		}
	}()
}

// tuneGC sets GOGC by the size of the live heap until ctx ends: the runtime's default for a small
// heap, less for a large heap, which the default would double. GOGC holds for the whole process: a
// program may set it, a library may not. GOMEMLIMIT still holds.
func tuneGC(ctx context.Context) {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	percent := 0
	for {
		metrics.Read(live)
		if p := gcPercent(live[0].Value.Uint64()); p != percent {
			percent = p
			debug.SetGCPercent(p)
		}
		if !backoff.Sleep(ctx, time.Second) {
			return
		}
	}
}

// limitMemory makes the garbage collector run more often before the process exceeds the memory of
// the container or machine. A tenth is for what the runtime does not count, such as buffers of the
// kernel, and at least 12 MiB, for garbage that is made faster than collected.
func limitMemory() {
	available := memlimit.Available()
	debug.SetMemoryLimit(available - max(available/10, min(12<<20, available/4)))
}

func gcPercent(live uint64) int {
	if live == 0 { // before the first collection
		return gcMostPercent
	}
	return int(min(max(gcHeadroom*100/live, gcLeastPercent), gcMostPercent))
}
