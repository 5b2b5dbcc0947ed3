//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/testca"
)

// The commands of docs/guide/backup.md work as they are written, and print what the page shows.
func TestGuide_Backup(t *testing.T) {
	ports := reserveGuidePorts(t)
	dir := t.TempDir()
	for _, name := range []string{"bin", "zk1"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	writePrograms(t, dir)
	sh := startShell(t, dir, ports)
	commands := 0
	for _, b := range readGuide(t, "backup.md", ports) {
		for i := range b.lines {
			b.lines[i] = strings.ReplaceAll(b.lines[i], "/var/backups/gozkd", filepath.Join(dir, "backups"))
		}
		if strings.HasPrefix(b.lines[0], "dataDir=") {
			testca.WriteFile(t, filepath.Join(dir, "zk1", "zoo.cfg"), []byte(b.text()))
			sh.run("gozkd serve zk1/zoo.cfg 2>> zk1/log & echo $! > zk1/pid")
			continue
		}
		for _, c := range b.commands() {
			sh.check(c)
			commands++
		}
	}
	if commands < 4 {
		t.Errorf("only %d commands in the page", commands)
	}
}
