package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/backup"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/inspect"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/mirror"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/moving"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/shell"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/status"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/top"
	"github.com/gozkd/gozkd/internal/printable"
)

// commands are the subcommands other than serve and check-config, by name.
var commands = map[string]cli.Main{
	"admin":   runAdmin,
	"backup":  backup.Backup,
	"export":  moving.Export,
	"import":  moving.Import,
	"history": inspect.History,
	"inspect": inspect.Main,
	"migrate": moving.Migrate,
	"mirror":  mirror.Main,
	"restore": backup.Restore,
	"standby": standby,
	"cli":     shell.Main,
	"ruok":    status.Ruok,
	"status":  status.Main,
	"top":     top.Main,
	"verify":  backup.Verify,
	"why":     runWhy,
}

// outlasting are the subcommands that go on when the reader of their output, such as head, ends.
var outlasting = []string{"backup", "export", "import", "migrate", "mirror", "restore", "standby", "verify"}

// zkServerCommands are the subcommands of ZooKeeper's scripts but start-foreground and status.
var zkServerCommands = map[string]cli.Main{
	"init":      initialize,
	"print-cmd": printCommand,
	"restart":   noBackground("`systemctl restart gozkd`, or stop it and start it again"),
	"start":     noBackground("`systemctl start gozkd` with the unit deploy/gozkd.service, or `gozkd start-foreground [zoo.cfg]` under a supervisor"),
	"stop":      noBackground("`systemctl stop gozkd`, or send SIGTERM to the process: it transfers its leadership and exits"),
	"version":   prints(func() string { return cli.Version() + "\n" }),
	"zkCleanup": prints(func() string {
		return "Nothing to clean up: a server truncates its log after each checkpoint and updates its one checkpoint in place.\n"
	}),
}

// scripts maps each script of ZooKeeper that gozkd stands in for to the arguments that it implies.
var scripts = map[string][]string{
	"zkServer": {}, "zkCli": {"cli"}, "zkCleanup": {"zkCleanup"}, "zkServer-initialize": {"init"},
}

const zkServerUsage = "usage: zkServer.sh [--config DIR] start-foreground|status|version|print-cmd [zoo.cfg]"

// script returns the name of a script without its directory and suffix.
func script(path string) string { return strings.TrimSuffix(filepath.Base(path), ".sh") }

// ofScript returns the script that a command line is for, and its arguments. The script is the
// program's name (a symbolic link) or the first argument. is is false for another command line.
func ofScript(name string, args []string) (_ string, _ []string, is bool) {
	if _, is = scripts[script(name)]; !is && len(args) > 0 {
		if _, is = scripts[script(args[0])]; is {
			return script(args[0]), args[1:], true
		}
	}
	return script(name), args, is
}

// withConfDir takes --config DIR, which ZooKeeper's scripts allow as their first words. DIR
// replaces ZOOCFGDIR, and must have the configuration file if none is named. Source: zkEnv.sh.
func withConfDir(name string, args []string, env cli.Env) (string, []string, cli.Env) {
	inner, rest, is := ofScript(name, args)
	if !is || len(rest) < 2 || rest[0] != "--config" {
		return name, args, env
	}
	name, args = inner, rest
	dir, getenv := args[1], env.Getenv
	args = slices.Clone(args[2:])
	env.Getenv = func(variable string) string {
		if variable == "ZOOCFGDIR" {
			return dir
		}
		return getenv(variable)
	}
	if name == "zkServer" && len(args) == 1 && slices.Contains([]string{"start-foreground", "status", "print-cmd"}, args[0]) {
		args = append(args, filepath.Join(dir, cmp.Or(getenv("ZOOCFG"), "zoo.cfg")))
	}
	return name, args, env
}

// asGozkd translates the arguments of a script of ZooKeeper, which has such a command if ok.
func asGozkd(name string, args []string) (translated []string, ok bool) {
	name, args, isScript := ofScript(name, args)
	switch {
	case !isScript:
		return args, true
	case name != "zkServer":
		return append(slices.Clone(scripts[name]), args...), true
	case len(args) == 0:
		return nil, false
	}
	_, known := zkServerCommands[args[0]]
	return args, known || args[0] == "start-foreground" || args[0] == "status"
}

// mistyped reports whether the first argument is no subcommand, flag or file, and what is nearest.
func mistyped(args []string, getenv func(string) string) (near string, is bool) {
	if len(args) == 0 || args[0] == "" || args[0][0] == '-' || strings.ContainsAny(args[0], `./\`) {
		return "", false
	}
	names := []string{"serve", "check-config", "start-foreground"}
	names = slices.AppendSeq(names, maps.Keys(commands))
	names = slices.AppendSeq(names, maps.Keys(zkServerCommands))
	if slices.Contains(names, args[0]) {
		return "", false
	}
	for _, dir := range []string{"", getenv("ZOOCFGDIR"), getenv("ZOO_CONF_DIR")} {
		if _, err := os.Stat(filepath.Join(dir, args[0])); err == nil {
			return "", false
		}
	}
	slices.Sort(names)
	return cli.Nearest(args[0], names, 3), true
}

// noBackground refuses to manage background processes: service managers do that better.
func noBackground(instead string) cli.Main {
	return func(_ context.Context, _ []string, env cli.Env) int {
		return fail(env, fmt.Errorf("gozkd has no background mode and no pid file; use %s", instead))
	}
}

func prints(text func() string) cli.Main {
	return func(_ context.Context, _ []string, env cli.Env) int { return printTo(env, text()) }
}

// printTo prints text on standard output and returns the exit status.
func printTo(env cli.Env, text string) int {
	if _, err := fmt.Fprint(env.Out, text); err != nil {
		return fail(env, err)
	}
	return cli.OK
}

func fail(env cli.Env, err error) int {
	cli.Print(env.Err, "gozkd: "+printable.Error(err)+"\n")
	return cli.Failed
}

// printCommand prints the command that start-foreground would run, quoted for a shell.
func printCommand(_ context.Context, args []string, env cli.Env) int {
	inv, _, err := config.Load(append([]string{"serve"}, args...), env.Getenv, env.Names())
	self, wrong := os.Executable()
	if err = cmp.Or(err, wrong); err != nil {
		return fail(env, err)
	}
	words := []string{self, "serve"}
	if inv.File != "" {
		words = append(words, inv.File)
	}
	for i, w := range words {
		words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return printTo(env, strings.Join(words, " ")+"\n")
}
