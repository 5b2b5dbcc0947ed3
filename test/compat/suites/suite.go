package main

import (
	"context"
	"embed"
	"os/exec"
	"path"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// suite is a published test suite.
type suite struct {
	name string
	// install fetches the suite and its requirements.
	install func(ctx context.Context, root string) installed
	// slow: make compat runs no part of it.
	slow bool
	// strict: a failure on gozkd stands, except of the tests in racy, which fail on any server if
	// their client is slow.
	strict bool
	racy   []string
}

// installed is a suite that can be run.
type installed struct {
	version string
	// parts are run as processes of their own: classes or files.
	parts []string
	// quick lists the parts that make compat runs.
	quick []string
	// command returns the command that runs a part. Unless there is read, it writes JUnit's XML
	// into dir, where it may also write other files.
	command func(ctx context.Context, t target, part, dir string) *exec.Cmd
	// read reads the results from the output of a part. nil: they are in JUnit's XML.
	read func(output []byte) results
	// test shortens the name of a test, which JUnit gives as class and name. nil: class#name.
	test func(class, name string) string
}

// target is a server under test.
type target struct {
	name string
	// bin is a directory with a zkServer.sh that starts the server.
	bin string
	// own: the tests start ZooKeeper themselves, as they were published.
	own bool
	// kit is a gozkd-testkit, with which the tests use our test kit in place of their harness.
	// Empty: they use their harness.
	kit string
}

func suites() []suite {
	return []suite{
		{name: "kazoo", install: installKazoo},
		{name: "zookeeper", install: installZooKeeper},
		{name: "curator", install: installCurator},
		{name: "rust", install: installRust, slow: true},
		// Its test creates a znode when its server was started again, although its client may
		// not have noticed.
		{name: "go-zookeeper", install: installGoZooKeeper, strict: true, racy: []string{"TestIntegration_DNSHostProviderReconnect"}},
	}
}

// leftOut holds why tests of a suite are not run, or not judged.
type leftOut []struct{ pattern, reason string }

//go:embed leftout/*.txt
var leftOutFiles embed.FS

// readLeftOut reads leftout/SUITE.txt. Each line has a pattern as of package path, for a part or a
// test, and a reason. Lines with # are comments.
func readLeftOut(suite string) leftOut {
	text := must.Get(leftOutFiles.ReadFile("leftout/" + suite + ".txt"))
	return parseLeftOut(string(text))
}

func parseLeftOut(text string) leftOut {
	var list leftOut
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		pattern, reason, _ := strings.Cut(line, " ")
		if strings.TrimSpace(reason) == "" {
			must.Failf("leftout: %s has no reason", pattern)
		}
		if _, err := path.Match(pattern, ""); err != nil {
			must.Failf("leftout: %s: %w", pattern, err)
		}
		list = append(list, struct{ pattern, reason string }{pattern, reason})
	}
	return list
}

// has reports whether a part or test is left out.
func (l leftOut) has(name string) bool {
	for _, x := range l {
		if ok, _ := path.Match(x.pattern, name); ok { // parseLeftOut has checked the pattern
			return true
		}
	}
	return false
}
