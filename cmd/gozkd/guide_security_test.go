//go:build unix

package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/testca"
)

// The commands of docs/guide/security.md work as they are written, and print what the page shows.
func TestGuide_Security(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("the commands of docs/guide/security.md need openssl, which is not installed: ", err)
	}
	sh := startGuide(t, "zk1", "zk2", "zk3")
	ports := sh.ports
	sh.writeProgram("zkCli.sh", `exec gozkd zkCli.sh "$@"`)
	for _, b := range sh.read("operate.md") {
		if strings.HasPrefix(b.lines[0], "dataDir=zk1/data") {
			for n := 1; n <= 3; n++ {
				testca.WriteFile(t, filepath.Join(sh.dir, fmt.Sprintf("zk%d", n), "zoo.cfg"), []byte(ports.config(b, n)))
			}
		}
	}
	sh.run("for n in 1 2 3; do gozkd init --myid $n --configfile zk$n/zoo.cfg; gozkd serve zk$n/zoo.cfg 2>> zk$n/log & echo $! > zk$n/pid; done")
	serves := ports.toFree("127.0.0.1:218@ leader 0x1 1 0 0/0/0 5 3.9")
	sh.check(guideCommand{ports.toFree("gozkd status -server 127.0.0.1:2181,127.0.0.1:2182,127.0.0.1:2183"), []string{
		"SERVER…", strings.ReplaceAll(serves, "@", "1"), strings.ReplaceAll(serves, "@", "2"), strings.ReplaceAll(serves, "@", "3"),
	}})
	commands := 0
	for _, b := range sh.read("security.md") {
		if sh.define(b) {
			continue
		}
		for _, c := range b.commands() {
			sh.check(c)
			commands++
		}
	}
	sh.run("echo tickTime=x >> zk3/zoo.cfg") // then server 3 ends, and nobody waits for it
	for _, command := range []string{"restart 3", "reload"} {
		if output, status := sh.try(command); status == "0" {
			t.Errorf("%s: exit status 0 although server 3 does not start\n%s", command, output)
		}
	}
	if commands < 40 {
		t.Errorf("only %d commands in the page", commands)
	}
}
