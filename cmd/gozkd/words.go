package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
)

// serverWords are what zkServer.sh and its neighbours are asked for, beside start-foreground, which is serve, and status.
var serverWords = map[string]cli.Main{
	"init":      initialize,
	"print-cmd": printCommand,
	"restart":   background("`systemctl restart gozkd`, or stop it, and start it again"),
	"start":     background("`systemctl start gozkd` with the unit of deploy/gozkd.service, or `gozkd start-foreground [zoo.cfg]` under what keeps it running"),
	"stop":      background("`systemctl stop gozkd`, or send SIGTERM to the process: it hands the lead over, and ends"),
	"version":   version,
	"zkCleanup": cleanup,
}

// scripts are those of ZooKeeper that the program stands in for, and the words they mean here.
var scripts = map[string][]string{
	"zkServer": {}, "zkCli": {"cli"}, "zkCleanup": {"zkCleanup"}, "zkServer-initialize": {"init"},
}

const zkServerUsage = "usage: zkServer.sh start-foreground|status|version|print-cmd [zoo.cfg]"

// asGozkd turns how one of ZooKeeper's scripts is called into how gozkd is. name is that of the program; a script may also be
// the first of args. It reports false when the script is called with a word that it does not have.
func asGozkd(name string, args []string) ([]string, bool) {
	script := func(path string) string { return strings.TrimSuffix(filepath.Base(path), ".sh") }
	words, is := scripts[script(name)]
	if !is && len(args) > 0 {
		if words, is = scripts[script(args[0])]; is {
			name, args = args[0], args[1:]
		}
	}
	switch {
	case !is:
		return args, true
	case script(name) != "zkServer":
		return append(slices.Clone(words), args...), true
	case len(args) == 0:
		return nil, false
	}
	_, known := serverWords[args[0]]
	return args, known || args[0] == "start-foreground" || args[0] == "status"
}

// mistyped reports whether the first word is neither a command nor a flag nor a file, and which command is near.
func mistyped(args []string, getenv func(string) string) (near string, is bool) {
	if len(args) == 0 || args[0] == "" || strings.ContainsAny(args[0][:1], "-") || strings.ContainsAny(args[0], `./\`) {
		return "", false
	}
	word := args[0]
	words := []string{"serve", "check-config", "start-foreground"}
	words = slices.AppendSeq(words, maps.Keys(commands))
	words = slices.AppendSeq(words, maps.Keys(serverWords))
	if slices.Contains(words, word) {
		return "", false
	}
	for _, dir := range []string{"", getenv("ZOOCFGDIR"), getenv("ZOO_CONF_DIR")} {
		if _, err := os.Stat(filepath.Join(dir, word)); err == nil {
			return "", false
		}
	}
	slices.Sort(words)
	return config.Nearest(word, words), true
}

// background refuses what needs a server that runs on its own: a service manager does that better than a file with a process id.
func background(instead string) cli.Main {
	return func(_ context.Context, _ []string, env cli.Env) int {
		return failed(env, "there is no background mode and no pid file: "+instead)
	}
}

// failed says why a command could not do its work.
func failed(env cli.Env, why ...any) int {
	_, _ = fmt.Fprintln(env.Err, append([]any{"gozkd:"}, why...)...) // when Err fails there is nowhere left to say so
	return cli.Failed
}

func version(_ context.Context, _ []string, env cli.Env) int {
	if _, err := fmt.Fprintln(env.Out, cli.Version()); err != nil {
		return failed(env, err)
	}
	return cli.OK
}

// cleanup has nothing to do.
func cleanup(_ context.Context, _ []string, env cli.Env) int {
	const text = "Nothing to clean up: a server cuts its log after each checkpoint, and has one checkpoint, which it updates in place."
	if _, err := fmt.Fprintln(env.Out, text); err != nil {
		return failed(env, err)
	}
	return cli.OK
}

// printCommand prints what start-foreground would run, for a shell.
func printCommand(_ context.Context, args []string, env cli.Env) int {
	inv, err := config.Load(append([]string{"serve"}, args...), env.Getenv, nil)
	if err != nil {
		return failed(env, err)
	}
	self, err := os.Executable()
	if err != nil {
		return failed(env, err)
	}
	words := []string{self, "serve"}
	if inv.File != "" {
		words = append(words, inv.File)
	}
	for i, w := range words {
		words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	if _, err := fmt.Fprintln(env.Out, strings.Join(words, " ")); err != nil {
		return failed(env, err)
	}
	return cli.OK
}
