//go:build unix

package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

// The commands of docs/guide/backup.md work as they are written, and print what the page shows.
func TestGuide_Backup(t *testing.T) {
	sh := startGuide(t, "zk1")
	dir, ports := sh.dir, sh.ports
	commands := 0
	for _, b := range sh.read("backup.md") {
		for i := range b.lines {
			b.lines[i] = strings.ReplaceAll(b.lines[i], "/var/backups/gozkd", filepath.Join(dir, "backups"))
		}
		if strings.HasPrefix(b.lines[0], "dataDir=") {
			testca.WriteFile(t, filepath.Join(dir, "zk1", "zoo.cfg"), []byte(b.text()))
			sh.run("gozkd serve zk1/zoo.cfg 2>> zk1/log & echo $! > zk1/pid")
			continue
		}
		for _, c := range b.commands() {
			if strings.HasPrefix(c.line, "gozkd restore ") && strings.Contains(c.line, "--into restored") {
				sh.awaitArchived(c)
			}
			if at := "--at 0x100000004"; strings.Contains(c.line, at) {
				// On a busy machine, attempts that were given up may have made transactions, so
				// that the moment before the mistake is later.
				var mzxid int64
				_, stat, _ := strings.Cut(sh.run(ports.toFree("gozkd cli -server 127.0.0.1:2181 stat /app")), "mZxid = ")
				if _, err := fmt.Sscanf(stat, "%v", &mzxid); err != nil {
					t.Fatal(stat, err)
				}
				c.line = strings.Replace(c.line, at, fmt.Sprintf("--at %#x", mzxid-1), 1)
			}
			sh.check(c)
			commands++
		}
	}
	if commands < 4 {
		t.Errorf("only %d commands in the page", commands)
	}
}

// awaitArchived waits until the archive has all of the page's writes, by the znodes that a restore
// elsewhere finds: a second restore into the same directory is refused.
func (sh *guideShell) awaitArchived(c guideCommand) {
	sh.t.Helper()
	znodes := regexp.MustCompile(`\d+ znodes`).FindString(strings.Join(c.want, "\n"))
	if znodes == "" {
		sh.t.Fatalf("%s: the page does not say how many znodes are restored", c.line)
	}
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	late := watchdog.After(sh.t, 30*time.Second)
	for {
		output, _ := sh.try("rm -rf probe; " + strings.Replace(c.line, "--into restored", "--into probe", 1))
		if strings.Contains(output, ", "+znodes+",") {
			return
		}
		select {
		case <-poll.C:
		case <-late:
			sh.t.Fatalf("the archive did not get the last writes: %s", output)
		}
	}
}
