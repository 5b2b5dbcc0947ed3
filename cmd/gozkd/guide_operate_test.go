//go:build unix

package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gozkd/gozkd/internal/testca"
)

// ensembleGuide follows docs/guide/operate.md with three servers, and with a fourth one that joins
// and leaves.
type ensembleGuide struct {
	*guideShell
	config  guideBlock // zoo.cfg of server 1
	restore guideBlock // commands that begin a restored server
}

// The blocks of docs/guide/operate.md work as they are written, and print what the page shows. What
// the text between them asks for is done by before and after.
func TestGuide_Operate(t *testing.T) {
	for _, name := range []string{"openssl", "curl"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("the commands of docs/guide/operate.md need %s, which is not installed: %v", name, err)
		}
	}
	g := &ensembleGuide{guideShell: startGuide(t, "zk1", "zk2", "zk3", "zk4", "tmp")}
	commands := 0
	for _, b := range g.read("operate.md") {
		g.before(b)
		switch {
		case strings.HasPrefix(b.lines[0], "dataDir="):
			g.config = b
			for n := 1; n <= 3; n++ {
				g.writeConfig(n, "")
			}
		case !g.define(b):
			all := b.commands()
			if len(all) == 0 {
				t.Errorf("what is this block for?\n%s", b.text())
			}
			for _, c := range all {
				if strings.HasPrefix(c.line, "gozkd why ") {
					c = story(c)
				}
				g.check(c)
				commands++
			}
		}
		g.after(b)
	}
	if commands < 21 {
		t.Errorf("only %d commands in the page", commands)
	}
}

// before does what the text before a block asks for.
func (g *ensembleGuide) before(b guideBlock) {
	switch text := b.text(); {
	case b.heading == "Restore" && strings.HasPrefix(text, "$ mv "):
		g.runPage("gozkd cli -server 127.0.0.1:2181 create /written-later")
		g.stop(1, 2, 3)
	case b.heading == "Quorum gone for good" && strings.HasPrefix(text, "$ gozkd inspect "):
		g.loseQuorum()
	case strings.HasPrefix(text, "$ gozkd init --id 4 "):
		g.holdWorkers()
		g.writeConfig(4, g.ports.toFree("server.4=127.0.0.1:2884:3884;2184\ngozkd.peer.secretFile=zk1/secret\n"))
	}
}

// after does what the text after a block asks for, and checks what the block has reached.
func (g *ensembleGuide) after(b guideBlock) {
	switch text := b.text(); {
	case strings.HasPrefix(text, "$ gozkd init --id 1 "): // "Do the same for servers 2 and 3."
		for _, n := range []string{"2", "3"} {
			for _, c := range b.commands() {
				c.line = strings.NewReplacer("zk1", "zk"+n, "--id 1", "--id "+n).Replace(c.line)
				for i := range c.want {
					c.want[i] = strings.ReplaceAll(c.want[i], "zk1", "zk"+n)
				}
				g.check(c)
			}
		}
	case strings.Contains(text, "rehearse.sh BACKUP"):
		g.rehearse()
	case b.heading == "Restore" && strings.HasPrefix(text, "$ gozkd serve "):
		g.restore = b
		g.startOthersEmpty()
		if output, status := g.try(g.ports.toFree("gozkd cli -server 127.0.0.1:2183 get /written-later")); status == "0" {
			g.t.Errorf("a znode outlives the restore of an earlier backup: %s", output)
		}
	case b.heading == "Quorum gone for good" && strings.HasPrefix(text, "$ gozkd restore "):
		for _, c := range g.restore.commands() {
			g.check(c)
		}
		g.startOthersEmpty()
		g.runPage("gozkd cli -server 127.0.0.1:2183 get /survives")
	case strings.HasPrefix(text, "upgrade() {"):
		g.upgrade()
	case strings.HasPrefix(text, "$ gozkd init --id 4 "):
		g.awaitVoters(4)
		for _, c := range b.commands() {
			if line, add, ok := strings.Cut(c.line, "reconfig -add "); ok { // "the same way"
				_, rest, _ := strings.Cut(add, `\n`)
				g.check(guideCommand{line + `reconfig -remove 4\n` + rest, c.want})
			}
		}
		g.stop(4)
		g.awaitVoters(3)
	case strings.HasPrefix(text, "$ kill $(cat zk3/pid)"):
		g.awaitVoters(3)
		g.runPage("gozkd cli -server 127.0.0.1:2183 get /survives")
	case strings.HasPrefix(text, "$ gozkd why "): // "When something breaks: Slow disk"
		g.moveLog(2)
	}
}

// writeConfig writes the zoo.cfg of server n, which has these lines in addition.
func (g *ensembleGuide) writeConfig(n int, lines string) {
	name := filepath.Join(g.dir, fmt.Sprintf("zk%d", n), "zoo.cfg")
	testca.WriteFile(g.t, name, []byte(g.ports.config(g.config, n)+lines))
}

// runPage runs a command that has the ports of the page.
func (g *ensembleGuide) runPage(command string) string {
	g.t.Helper()
	return g.run(g.ports.toFree(command))
}

// awaitVoters waits until this many servers are one leader and followers in sync that vote.
func (g *ensembleGuide) awaitVoters(servers int) {
	g.t.Helper()
	addresses, want := "", []string{"SERVER…"}
	for n := range servers {
		addresses += fmt.Sprintf(",127.0.0.1:218%d", n+1)
		want = append(want, g.ports.toFree(fmt.Sprintf("127.0.0.1:218%d leader 0x1 1 0 0/0/0 5 3.9", n+1)))
	}
	g.check(guideCommand{g.ports.toFree("gozkd status -server " + addresses[1:]), want})
	g.check(guideCommand{g.ports.toFree(fmt.Sprintf(`curl -s "http://127.0.0.1:808[1-%d]/commands/monitor" |
		grep -c -e '"synced_followers": %d' -e '"synced_non_voting_followers": 0'`, servers, servers-1)), []string{"2"}})
}

func (g *ensembleGuide) stop(servers ...int) {
	g.t.Helper()
	for _, n := range servers {
		g.run(fmt.Sprintf("kill $(cat zk%d/pid); while kill -0 $(cat zk%[1]d/pid) 2> /dev/null; do sleep 0.05; done", n))
	}
}

func (g *ensembleGuide) start(n int) {
	g.t.Helper()
	g.run(fmt.Sprintf("gozkd serve zk%d/zoo.cfg 2>> zk%[1]d/log & echo $! > zk%[1]d/pid", n))
}

// moveLog gives the log of server n a directory of its own, as the page advises for a slow disk.
func (g *ensembleGuide) moveLog(n int) {
	g.t.Helper()
	g.stop(n)
	g.run(fmt.Sprintf("mkdir zk%d/log.d; mv zk%[1]d/data/wal zk%[1]d/log.d", n))
	g.run(fmt.Sprintf("echo dataLogDir=zk%d/log.d >> zk%[1]d/zoo.cfg", n))
	g.start(n)
	g.awaitVoters(3)
	g.runPage(fmt.Sprintf("gozkd cli -server 127.0.0.1:218%d get /survives", n))
}

// empty leaves nothing but myid in a data directory.
func (g *ensembleGuide) empty(n int) {
	g.t.Helper()
	g.run(fmt.Sprintf("rm -r zk%d/data; mkdir zk%[1]d/data; echo %[1]d > zk%[1]d/data/myid", n))
}

// startOthersEmpty starts servers 2 and 3 with data directories that have nothing but myid.
func (g *ensembleGuide) startOthersEmpty() {
	g.t.Helper()
	for n := 2; n <= 3; n++ {
		g.empty(n)
		g.start(n)
	}
	g.awaitVoters(3)
}

// loseQuorum lets two of three servers lose their data. All three say so, and soon, because their
// tick is short.
func (g *ensembleGuide) loseQuorum() {
	g.t.Helper()
	g.runPage("gozkd cli -server 127.0.0.1:2182 create /survives; gozkd cli -server 127.0.0.1:2181 sync /survives")
	g.stop(1, 2, 3)
	for n := 1; n <= 3; n++ {
		g.writeConfig(n, "tickTime=200\n")
		if n > 1 {
			g.empty(n)
		}
		g.start(n)
	}
	for n := 1; n <= 3; n++ {
		grep := fmt.Sprintf("grep 'quorum is gone for good.*with_data=.*1.*without_data=.*2.*3' zk%d/log", n)
		g.check(guideCommand{grep, []string{"…"}})
	}
	g.stop(1, 2, 3)
	for n := 1; n <= 3; n++ {
		g.writeConfig(n, "")
	}
	g.run("rm -r zk1/data.old; mv zk1/data zk1/data.old; mkdir zk1/data; echo 1 > zk1/data/myid")
}

// rehearse lists the backup with rehearse.sh, which ends, and leaves nothing, also if it fails.
func (g *ensembleGuide) rehearse() {
	g.t.Helper()
	g.writeProgram("../dies/gozkd", `if [ "$1" = serve ]; then
  [ "$when" = ports ] || echo '{"client":"127.0.0.1:1"}' > "$7"
  echo "no $when: connection refused" >&2; exit 1
fi
PATH=${PATH#*:} exec gozkd "$@"
`)
	g.run("head -c 9000 backup.db > torn.db")
	for _, r := range []struct{ command, says, status string }{
		{"sh rehearse.sh backup.db", "/", "0"},
		{"sh rehearse.sh torn.db", "torn.db", "1"},
		{"PATH=$PWD/dies:$PATH when=ports sh rehearse.sh backup.db", "no ports", "1"},
		{"PATH=$PWD/dies:$PATH when=clients sh rehearse.sh backup.db", "connection refused", "1"},
	} {
		output, status := g.try("TMPDIR=$PWD/tmp " + r.command)
		if status != r.status || !strings.Contains(output, r.says) {
			g.t.Errorf("%s: exit status %s, want %s\n%s\nwant %q", r.command, status, r.status, output, r.says)
		}
		if left := g.run("ls tmp"); left != "" {
			g.t.Errorf("%s left %s", r.command, left)
		}
	}
}

// upgrade restarts the servers in turn, twice, as the page says that an ensemble gets a secret.
// Where a server dies, hangs, or does not start, upgrade gives up.
func (g *ensembleGuide) upgrade() {
	g.t.Helper()
	g.run("cp zk1/secret zk2; cp zk1/secret zk3")
	for _, mode := range []string{"gozkd.peer.secretMode=prefer\n", ""} {
		var order, leader []int
		for n := 1; n <= 3; n++ {
			g.writeConfig(n, fmt.Sprintf("gozkd.peer.secretFile=zk%d/secret\n%s", n, mode))
			mode, _ := g.try(g.ports.toFree(fmt.Sprintf("gozkd status -server 127.0.0.1:218%d", n)))
			if strings.Contains(mode, "leader") {
				leader = append(leader, n)
			} else {
				order = append(order, n)
			}
		}
		for _, n := range append(order, leader...) {
			g.check(guideCommand{fmt.Sprint("upgrade ", n), []string{fmt.Sprintf("server %d is back", n)}})
		}
	}
	for _, f := range []struct{ fail, says, mend string }{
		{"echo tickTime=x >> zk3/zoo.cfg; upgrade 3", "tickTime", "sed -i.bak /tickTime/d zk3/zoo.cfg"},
		{"kill -STOP $(cat zk3/pid); upgrade 3 1", "server 3 does not stop", "kill -CONT $(cat zk3/pid)"},
		{"kill -KILL $(cat zk2/pid); upgrade 3 1", "server 3 ", "gozkd serve zk2/zoo.cfg 2>> zk2/log & echo $! > zk2/pid"},
	} {
		if output, status := g.try(f.fail); status != "1" || !strings.Contains(output, f.says) {
			g.t.Errorf("%s: exit status %s\n%s\nwant 1, and %q", f.fail, status, output, f.says)
		}
		g.run(f.mend)
		g.run("upgrade 3")
	}
}

// holdWorkers lets a client that has /workers/7 stand still.
func (g *ensembleGuide) holdWorkers() {
	g.t.Helper()
	g.runPage("gozkd cli -server 127.0.0.1:2182 create /workers")
	client := hold(g.t, g.ports.toFree("127.0.0.1:2182"), "/workers/7")
	if err := client.Process.Signal(syscall.SIGSTOP); err != nil {
		g.t.Fatal(err)
	}
}

// story is a command that says why a session ended. The page breaks the first line of its answer,
// whose end depends on what the server was doing meanwhile.
func story(c guideCommand) guideCommand {
	first, _, _ := strings.Cut(c.want[0], "silent for ")
	return guideCommand{c.line, []string{first + "silent for …", c.want[len(c.want)-1]}}
}
