package moving

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/internal/testkit/logbuf"
	"github.com/gozkd/gozkd/internal/testkit/zkrecord"
	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/internal/zklearner"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// follow has a migration follow a leader until it is gone. Each script is what the leader sends on
// one connection.
func follow(t *testing.T, scripts ...[]zklearner.Packet) *migration {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &migration{
		Command: cli.Command{Env: cli.Env{Out: &strings.Builder{}}}, target: target{into: filepath.Join(t.TempDir(), "new")},
		seen: make(map[string]bool), ended: make(chan error, 1), look: make(chan struct{}, 1),
	}
	m.learner = zklearner.New(zklearner.Config{Servers: []string{l.Addr().String()}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { // ends with ctx, and the cleanup waits for it
		defer close(done)
		m.end(m.learner.Run(ctx))
	}()
	t.Cleanup(func() { cancel(); <-done })
	for _, script := range scripts {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(c)
		for _, p := range script {
			_, _ = c.Write(p.Append(nil)) // the learner may be gone
		}
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		for err = nil; err == nil; { // until the learner has read everything
			_, err = zklearner.ReadPacket(in)
		}
		_ = c.Close() // everything was exchanged
	}
	_ = l.Close() // nothing connects any more
	return m
}

// leads is what the leader of an epoch sends first.
func leads(epoch uint32, more ...zklearner.Packet) []zklearner.Packet {
	return append([]zklearner.Packet{{Type: zklearner.LeaderInfo, Zxid: proto.MakeZxid(epoch, 0), Data: jute.AppendInt(nil, 0x10000)}}, more...)
}

// settled is a leader of a number of voters that sends transactions, which have no digests, and
// confirms them.
func settled(voters int, txns ...*zkfiles.Record) []zklearner.Packet {
	script := leads(1, zklearner.Packet{Type: zklearner.Diff})
	for _, x := range txns {
		script = append(script, zklearner.Packet{Type: zklearner.Proposal, Zxid: x.Zxid, Data: zkrecord.Append(nil, x)}, zklearner.Packet{Type: zklearner.Commit, Zxid: x.Zxid})
	}
	var lines []byte
	for i := range voters {
		lines = fmt.Appendf(lines, "server.%d=127.0.0.1:%d:%d:participant\n", i+1, i+1, i+11)
	}
	return append(script, zklearner.Packet{Type: zklearner.NewLeader, Zxid: proto.MakeZxid(1, 0), Data: lines}, zklearner.Packet{Type: zklearner.UpToDate})
}

func creation(zxid proto.Zxid, path string) *zkfiles.Record {
	return &zkfiles.Record{Session: 7, Zxid: zxid, TimeMs: 1, Txn: zkfiles.Txn{Op: proto.OpCreate, Path: path, ACL: proto.OpenACL(), ParentCversion: 1}}
}

// stopped makes the dataDir of a stopped server, with a log of these transactions.
func stopped(t *testing.T, id string, txns ...*zkfiles.Record) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "version-2"), 0o700); err != nil {
		t.Fatal(err)
	}
	log := zkfiles.AppendLogHeader(nil)
	for _, x := range txns {
		log = zkrecord.AppendToLog(log, x)
	}
	testca.WriteFile(t, filepath.Join(dir, "version-2", fmt.Sprintf("log.%x", int64(txns[0].Zxid))), append(log, make([]byte, 4096)...))
	if id != "" {
		testca.WriteFile(t, filepath.Join(dir, "myid"), []byte(id+"\n"))
	}
	return dir
}

// finish runs a finish, and returns its report and the error.
func finish(t *testing.T, m *migration, q question) string {
	t.Helper()
	var b strings.Builder
	q.Finish, q.Stopped, q.Unverified = true, true, q.Unverified || len(q.Tail) == 0
	err := m.finish(t.Context(), &q, func(label, format string, args ...any) { b.WriteString(cli.Labelled(label, format, args...)) })
	return b.String() + fmt.Sprint(err)
}

// Only the logs of different voters are a proof. Without a proof nothing is founded, unless the
// user says so.
func TestMigrateFinish_Proof(t *testing.T) {
	a, b := creation(0x100000001, "/a"), creation(0x100000002, "/b")
	first, second, observer, unnamed := stopped(t, "1", a, b), stopped(t, "2", a), stopped(t, "9", a, b), stopped(t, "", a, b)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(unnamed, link); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct {
		name string
		tail []string
		want string
	}{
		{"two voters", []string{first, second}, "proved      nothing that was committed is missing: the logs of 2 of 3"},
		{"a voter, and a directory without its number", []string{first, unnamed}, "proved      nothing"},
		{"one voter", []string{first}, "the logs of 1 voters prove nothing, those of 2 of the 3 voters do"},
		{"a voter and an observer", []string{first, observer}, "the logs of 1 voters prove nothing"},
		{"one voter twice", []string{first, first}, "are the same server"},
		{"a voter and its copy", []string{first, stopped(t, "1", a)}, "are the same server"},
		{"one directory by two names", []string{unnamed, link}, "are the same server"},
		{"none", nil, "not proved"},
	} {
		m := follow(t, settled(3, a))
		got := finish(t, m, question{Tail: c.tail})
		if !strings.Contains(got, c.want) || strings.Contains(c.want, "not proved") != strings.Contains(got, "not proved") {
			t.Errorf("%s:\n%s", c.name, got)
		}
		_, err := os.Stat(m.into)
		if founds := strings.Contains(got, "proved  "); founds != (err == nil) || founds != strings.HasSuffix(got, "<nil>") {
			t.Errorf("%s: the data directory: %v\n%s", c.name, err, got)
		}
		if !strings.Contains(got, "add --unverified") {
			continue
		}
		if got := finish(t, m, question{Tail: c.tail, Unverified: true}); !strings.Contains(got, "not proved") || !strings.HasSuffix(got, "<nil>") {
			t.Errorf("%s, with --unverified:\n%s", c.name, got)
		}
	}
	before35 := follow(t, settled(0, a))
	if got := finish(t, before35, question{Tail: []string{first}}); !strings.Contains(got, "ZooKeeper before 3.5 does not name its servers") {
		t.Error(got)
	}
}

// Logs do not replace a state that the leader has not sent: they may begin after a purge.
func TestMigrateFinish_WithoutTheState(t *testing.T) {
	a, b := creation(0x100000001, "/a"), creation(0x200000001, "/b")
	m := follow(t, settled(1, a), leads(2, zklearner.Packet{Type: zklearner.Trunc}))
	if got := finish(t, m, question{Tail: []string{stopped(t, "1", b)}}); !strings.Contains(got, "did not send its whole state") {
		t.Error(got)
	}
	if _, err := os.Stat(m.into); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the data directory exists", err)
	}
}

// The directory of another server changes nothing, and finish can be called again. A server that
// has its state from a leader has the snapshot instead of the log.
func TestMigrateFinish_OtherLogs(t *testing.T) {
	a, b, c := creation(0x100000001, "/a"), creation(0x100000002, "/b"), creation(0x100000003, "/c")
	m := follow(t, settled(1, a, b))
	if got := finish(t, m, question{Tail: []string{stopped(t, "", creation(c.Zxid, "/wrong"))}}); !strings.Contains(got, "does not have transaction 0x100000002") {
		t.Error(got)
	}
	right := stopped(t, "1", c)
	testca.WriteFile(t, filepath.Join(right, "version-2", "snapshot.100000002"), nil)
	if got := finish(t, m, question{Tail: []string{right}}); !strings.Contains(got, "1 transactions after 0x100000002") || !strings.Contains(got, "proved      nothing") {
		t.Error(got)
	}
}

// An interrupt that comes after the founding does not deny it.
func TestMigrate_InterruptedTooLate(t *testing.T) {
	m := &migration{ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m.end(nil)
	if err := m.watch(ctx); err != nil {
		t.Error(err)
	}
	m.end(ctx.Err())
	if err := m.watch(ctx); err == nil || !strings.Contains(err.Error(), "nothing was written") {
		t.Error(err)
	}
}

// What is wrong with --from is said at once and every ten seconds. That a finish comes after the
// last one is said at once, too.
func TestMigrate_SaysAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out logbuf.Buffer
		m := &migration{ended: make(chan error, 1), look: make(chan struct{}, 1)}
		m.Env.Out = &out
		m.learner = zklearner.New(zklearner.Config{Servers: []string{"nowhere.invalid:2888"}})
		var watching sync.WaitGroup
		watching.Go(func() { _ = m.watch(t.Context()) })
		for times, after := range []time.Duration{time.Second, 10 * time.Second, 10 * time.Second} {
			time.Sleep(after)
			synctest.Wait()
			if out.Count("waiting     for a leader:") != times+1 {
				t.Errorf("after %v: %q", after, out.String())
			}
		}
		m.end(nil)
		watching.Wait()
		founded := t.TempDir()
		testca.WriteFile(t, filepath.Join(founded, "checkpoint.db"), nil)
		begun := time.Now()
		status, _, stderr := run(t, Migrate, "finish", founded, "--unverified")
		if status != cli.Failed || !strings.Contains(stderr, "finished already") || time.Since(begun) > 0 {
			t.Errorf("status %d after %v: %s", status, time.Since(begun), stderr)
		}
	})
}

// The path of a socket is short on every system.
func TestMigrate_LongPath(t *testing.T) {
	status, _, stderr := run(t, Migrate, "--from", "127.0.0.1:1", "--into", filepath.Join(t.TempDir(), strings.Repeat("x", 120)))
	if status == cli.OK || !strings.Contains(stderr, "name --into relative") {
		t.Error(stderr)
	}
}
