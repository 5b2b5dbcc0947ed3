//go:build unix

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// The commands of README.md for three servers, and those that read ZooKeeper's files, work as they
// are written. So do commands of other pages that any server can answer.
func TestGuide_README(t *testing.T) {
	sh := startGuide(t)
	writeZooKeeper(t, filepath.Join(sh.dir, "zookeeper", "version-2"))
	ran := 0
	for _, b := range sh.read("../../README.md") {
		for _, line := range b.lines {
			if b.language != "sh" {
				break
			}
			command := strings.Replace(line, "/var/lib/zookeeper", "zookeeper", 1)
			switch words := strings.Fields(command); {
			case b.heading == "Three servers" && words[0] != "go":
				continue // below
			case len(words) > 1 && words[0] == "gozkd" && strings.Contains("import export inspect", words[1]):
				sh.run(command)
				ran++
			}
		}
		if b.heading == "Three servers" && b.language == "sh" {
			sh.followThreeServers(b)
			ran++
		}
	}
	if ran != 4 {
		t.Errorf("%d parts of the page were run", ran)
	}
}

// followThreeServers runs the commands of a block that starts three servers, and kills one.
func (sh *guideShell) followThreeServers(b guideBlock) {
	sh.t.Helper()
	last := len(b.lines) - 1
	if !strings.HasPrefix(b.lines[0], "go build ") || !strings.HasPrefix(b.lines[last], "kill -9 %1") {
		sh.t.Fatalf("the block is another one:\n%s", b.text())
	}
	sh.t.Cleanup(func() { _, _ = fmt.Fprintln(sh.stdin, "jobs -p > pids; kill -9 $(cat pids)") })
	if output := sh.run(strings.Join(b.lines[1:last], "\n")); !strings.Contains(output, "[zookeeper]") {
		sh.t.Errorf("%s prints\n%s", b.text(), output)
	}
	sh.run("jobs -p > pids; " + strings.Replace(b.lines[last], "%1", "$(sed -n 1p pids)", 1)) // %1 needs a terminal
	// In place of the server that a command asks by default.
	ask := func(command string) string {
		return strings.Replace(command, "gozkd cli ", sh.ports.toFree("gozkd cli -server 127.0.0.1:2182,127.0.0.1:2183 "), 1)
	}
	sh.run(ask("gozkd cli create /billing"))
	sh.run(ask("gozkd cli create /app hello"))
	commands := 0
	for _, page := range []string{"capacity.md", "../reference/shell.md"} {
		for _, b := range sh.read(page) {
			for _, line := range b.lines {
				if strings.HasPrefix(line, "gozkd cli ") {
					sh.run(ask(line))
					commands++
				}
			}
			for _, c := range b.commands() {
				switch {
				case strings.HasPrefix(c.line, "gozkd history "):
					c.line = strings.Replace(c.line, "zk1/data", "data2", 1)
					sh.check(c)
					commands++
				case strings.HasPrefix(c.line, "gozkd cli "): // the page shows an error
					if output, status := sh.try(ask(c.line)); status != "1" || output != (guideBlock{lines: c.want}).text() {
						sh.t.Errorf("%s: exit status %s\n%s", c.line, status, output)
					}
					commands++
				}
			}
		}
	}
	if commands != 6 {
		sh.t.Errorf("%d commands of the other pages were run", commands)
	}
	sh.run("for pid in $(sed 1d pids); do kill $pid && wait $pid || exit; done")
}
