package main

import (
	"context"
	"errors"

	"github.com/gozkd/gozkd/test/compat/cases"
	"github.com/gozkd/gozkd/test/compat/gozk"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/server"
	"github.com/gozkd/gozkd/test/compat/shell"
)

// client is a script for a client library.
type client struct {
	name string
	// install fetches and builds what run needs, so that run's time is the client's alone.
	install func(ctx context.Context, root string) error
	run     func(ctx context.Context, root, addr string) (cases.Report, error)
	// own replaces run for a client that starts its servers itself; bin has its zkServer.sh.
	own func(ctx context.Context, root, bin string) (cases.Report, error)
	// faults replaces run for a client of an ensemble under faults, which only gozkd can run.
	faults func(ctx context.Context, root, portFile string) (cases.Report, error)
	// notOn names a server that the client does not apply to.
	notOn string
}

// runsOn reports whether the client applies to a server.
func (c client) runsOn(t target) bool {
	return t.name != c.notOn && (c.faults == nil || t.startForTests != nil)
}

func (c client) flagName() string { return c.name }

func clients() []client {
	return []client{
		{name: "go-zookeeper", install: nothing, run: runGo},
		{name: "go-zookeeper-own", install: nothing, own: runGoOwn},
		{name: "kazoo", install: installKazoo, run: runKazoo},
		{name: "kazoo-faults", install: installKazoo, faults: runKazooFaults},
		{name: "zkcli-3.8", install: installDebianShell, run: runDebianShell},
		{name: "zkcli-3.9", install: installMaven, run: shell.MavenZkCli},
		{name: "cli", install: installCLI, run: runCLI, notOn: "zookeeper-" + server.Debian},
		{name: "cli_mt", install: installCShell, run: runCShell},
		{name: "libzookeeper_mt", install: installCClient, run: runCClient},
		{name: "java", install: installJava, run: javaScript("zookeeper")},
		{name: "curator", install: installJava, run: javaScript("curator")},
		{name: "curator-faults", install: installJava, faults: javaScript("curator-faults")},
		{name: "recipes", install: nothing, run: runEssentials},
		sharing("recipes-curator", ours(), curator()),
		sharing("recipes-kazoo", ours(), kazoo()),
		sharing("recipes-all", ours(), curator(), kazoo()),
	}
}

// nothing installs nothing: this program contains the client.
func nothing(context.Context, string) error { return nil }

func runGo(ctx context.Context, _, addr string) (cases.Report, error) {
	return gozk.Run(ctx, addr, server.SuperPassword)
}

// runGoOwn presents all servers as the newest ZooKeeper: the tests only ask whether there is
// reconfig.
func runGoOwn(ctx context.Context, root, bin string) (cases.Report, error) {
	return gozk.RunOwn(ctx, root, bin, server.Maven)
}

func installKazoo(ctx context.Context, root string) error {
	_, err := install.Kazoo(ctx, root)
	return err
}

func runKazoo(ctx context.Context, root, addr string) (cases.Report, error) {
	python, err := install.Kazoo(ctx, root)
	if err != nil {
		return cases.Report{}, err
	}
	return script(ctx, python, root+"/test/compat/kazoo/compat.py", addr, server.SuperPassword)
}

func runKazooFaults(ctx context.Context, root, portFile string) (cases.Report, error) {
	python, err := install.Kazoo(ctx, root)
	if err != nil {
		return cases.Report{}, err
	}
	return script(ctx, python, root+"/test/compat/kazoo/faults.py", portFile)
}

func installDebianShell(ctx context.Context, _ string) error {
	_, err := install.DebianShell(ctx)
	return err
}

func runDebianShell(ctx context.Context, _, addr string) (cases.Report, error) {
	return shell.DebianZkCli(ctx, addr)
}

func installMaven(ctx context.Context, root string) error {
	_, err := install.MavenZooKeeper(ctx, root)
	return err
}

// The row cli needs shell and server of the same release: an older server lacks some commands.
func installCLI(ctx context.Context, root string) error {
	return errors.Join(shell.BuildCLI(ctx, root), installMaven(ctx, root))
}

func runCLI(ctx context.Context, root, addr string) (cases.Report, error) {
	return shell.Twin(ctx, root, shell.CLIPath(root), addr)
}

func installCShell(ctx context.Context, _ string) error {
	_, _, err := install.CShell(ctx)
	return err
}

func runCShell(ctx context.Context, _, addr string) (cases.Report, error) {
	return shell.CliMT(ctx, addr)
}

func installCClient(ctx context.Context, root string) error {
	_, err := install.CClient(ctx, root)
	return err
}

func runCClient(ctx context.Context, root, addr string) (cases.Report, error) {
	program, err := install.CClient(ctx, root)
	if err != nil {
		return cases.Report{}, err
	}
	return script(ctx, program, addr, server.SuperPassword)
}

func installJava(ctx context.Context, root string) error {
	_, err := install.JavaClient(ctx, root)
	return err
}

// javaScript runs the part of the Java program for a library. where is an address, or a port file
// for faults.
func javaScript(library string) func(ctx context.Context, root, where string) (cases.Report, error) {
	return func(ctx context.Context, root, where string) (cases.Report, error) {
		classPath, err := install.JavaClient(ctx, root)
		if err != nil {
			return cases.Report{}, err
		}
		// Curator does not know its own version at run time.
		curator, err := install.MavenVersion(root, "curator-recipes")
		if err != nil {
			return cases.Report{}, err
		}
		java := javaCommand(root, classPath)
		return script(ctx, java[0], append(java[1:], "Compat", library, where, server.SuperPassword, curator)...)
	}
}

// javaCommand returns a java command for short programs, without the main class.
func javaCommand(root, classPath string) []string {
	return []string{"java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dlogback.configurationFile=" + root + "/test/compat/java/logback.xml", "-cp", classPath}
}
