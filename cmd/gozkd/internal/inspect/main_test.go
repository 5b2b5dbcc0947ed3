package inspect

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/replica"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(watchdog.Watch(m)) }

const sessionTimeout = time.Hour // no session expires because the machine is slow

// serve runs a server with a data directory, lets a client do something, and stops the server.
func serve(t *testing.T, dir string, snapCount int, do func(c *zk.Conn)) {
	t.Helper()
	serveWith(t, dir, snapCount, func(c *zk.Conn, _ *server.Server) { do(c) })
}

func serveWith(t *testing.T, dir string, snapCount int, do func(c *zk.Conn, s *server.Server)) {
	t.Helper()
	s, err := server.New(server.Config{Dir: dir, InProcess: true, Tick: 200 * time.Millisecond, MaxSessionTimeout: sessionTimeout, SnapCount: snapCount})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, _, err := zk.Connect([]string{s.ConnectString()}, sessionTimeout, zk.WithDialer(s.Dialer()), zk.WithLogger(log.New(io.Discard, "", 0)))
	if err != nil {
		t.Fatal(err)
	}
	do(c, s)
	for c.Close(); len(s.Facts().Sessions()) > 0; { // Close waits for the reply for a second at most
		time.Sleep(time.Millisecond)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// fill makes a log with each kind of operation, and returns what inspect must say about the
// operations on paths: operation, path and error.
func fill(t *testing.T, c *zk.Conn) (want []string) {
	t.Helper()
	open := zk.WorldACL(zk.PermAll)
	expect := func(err, wantErr error, said ...string) {
		t.Helper()
		if !errors.Is(err, wantErr) {
			t.Fatalf("%v: error %v, want %v", said, err, wantErr)
		}
		want = append(want, said...)
	}
	_, err := c.Create("/app", []byte("hello"), 0, open)
	expect(err, nil, "create /app 0")
	_, err = c.Create("/app/n-", nil, zk.FlagSequence, open)
	expect(err, nil, "create /app/n-0000000000 0")
	_, err = c.Create("/app/e", nil, zk.FlagEphemeral, open)
	expect(err, nil, "create /app/e 0")
	_, err = c.Create("/app", nil, 0, open)
	expect(err, zk.ErrNodeExists, "create /app -110")
	_, err = c.Set("/app", []byte("12"), 0)
	expect(err, nil, "setData /app 0")
	_, err = c.Set("/app", []byte("12"), 0)
	expect(err, zk.ErrBadVersion, "setData /app -103")
	_, err = c.SetACL("/app", zk.WorldACL(zk.PermAll), 0)
	expect(err, nil, "setACL /app 0")
	_, err = c.Multi(&zk.CreateRequest{Path: "/app/m", Acl: open}, &zk.SetDataRequest{Path: "/app/m", Version: -1}, &zk.CheckVersionRequest{Path: "/app", Version: 1})
	expect(err, nil, "multi  0", "create /app/m 0", "setData /app/m 0", "check /app 0")
	_, err = c.Multi(&zk.DeleteRequest{Path: "/app/m", Version: -1}, &zk.CheckVersionRequest{Path: "/app", Version: 7})
	expect(err, zk.ErrBadVersion, "multi  -103", "delete /app/m -2", "check /app -103")
	expect(c.Delete("/app/m", 1), nil, "delete /app/m 0")
	return want
}

// run runs a command, and returns its output, on which lines of JSON are expected.
func run(t *testing.T, main cli.Main, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	status = main(t.Context(), args, cli.Env{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }})
	return status, out.String(), errs.String()
}

func lines[T any](t *testing.T, main cli.Main, args ...string) (all []T) {
	t.Helper()
	status, stdout, stderr := run(t, main, append(args, "-output", "json")...)
	if status != cli.OK {
		t.Fatalf("%v: status %d\n%s", args, status, stderr)
	}
	for d := json.NewDecoder(strings.NewReader(stdout)); d.More(); {
		var v T
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

// said returns operations with paths as fill does.
func said(txns []txnJSON) (all []string) {
	for _, x := range txns {
		if x.Path != "" || len(x.Ops) > 0 {
			all = append(all, fmt.Sprintf("%s %s %d", x.Op, x.Path, int(*x.Err)))
		}
		all = append(all, said(x.Ops)...)
	}
	return all
}

// The log is printed with results, whether the server has written a checkpoint since or not;
// nothing is changed or locked.
func TestInspect_Log(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var want []string
	serve(t, dir, 100_000, func(c *zk.Conn) { want = fill(t, c) })
	txns := lines[txnJSON](t, Main, "--log", dir)
	if got := said(txns); !slices.Equal(got, want) {
		t.Fatalf("the log says\n%q\nwant\n%q", got, want)
	}
	for i, x := range txns {
		if x.Zxid != (proto.MakeZxid(1, 0)+proto.Zxid(i)+1).String() || x.Time == "" || x.Op != "createSession" && (x.Session == "" || len(x.IDs) == 0) {
			t.Errorf("transaction %d: %+v", i, x)
		}
	}
	last := txns[len(txns)-1]
	if last.Op != "closeSession" || !slices.Equal(last.Deleted, []string{"/app/e"}) {
		t.Errorf("the last transaction: %+v", last)
	}

	serve(t, dir, 3, func(c *zk.Conn) { // writes checkpoints
		for range 20 {
			if _, err := c.Set("/app", nil, -1); err != nil {
				t.Fatal(err)
			}
		}
	})
	before := vfstest.Fingerprint(t, dir)
	later := lines[txnJSON](t, Main, "--log", dir)
	later[len(txns)-1].Uncommitted = last.Uncommitted // what is known by now
	if got, want := mustJSON(t, later[:len(txns)]), mustJSON(t, txns); got != want || later[len(txns)].Zxid != "0x200000001" {
		t.Errorf("after a checkpoint the log says\n%s\nwant\n%s", got, want)
	}
	segments, err := filepath.Glob(filepath.Join(dir, "wal", "*.wal"))
	if err != nil || len(segments) != 1 {
		t.Fatal(segments, err)
	}
	for _, path := range []string{segments[0], filepath.Dir(segments[0])} { // without the checkpoint
		alone := lines[txnJSON](t, Main, path)
		if len(alone) != len(later) || alone[5].Path != later[5].Path || alone[5].Zxid != "" || alone[5].Err != nil {
			t.Errorf("%s: %d transactions, the sixth is %+v", path, len(alone), alone[5])
		}
	}
	if vfstest.Fingerprint(t, dir) != before {
		t.Error("inspect changed a file")
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Wherever the log begins, the zxid of a transaction before the checkpoint is right, or missing; it
// is there in the term of the checkpoint and in each term that begins in the log.
func TestInspect_ZxidsBeforeTheCheckpoint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	for range 3 { // terms
		serve(t, dir, 100_000, func(c *zk.Conn) {
			for range 5 {
				if _, err := c.Create("/n-", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll)); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	full := &saved{}
	log, err := consensus.ReadLog(dir, "", &full.Replica)
	if err != nil {
		t.Fatal(err)
	}
	// The checkpoint of this server is that of its start. Pretend that it was written at the end.
	all := append(log.Earlier, log.Later...)
	full.log.Later = all
	var zxids []proto.Zxid
	var terms []uint64
	if err := full.transactions(func(x *replica.Txn) bool { zxids, terms = append(zxids, x.Zxid), append(terms, x.Term); return true }); err != nil {
		t.Fatal(err)
	}
	for from := range all {
		cut := &saved{Replica: replica.Replica{Tree: full.Tree}}
		cut.log.Earlier, cut.log.Sure = all[from:], true
		at, given := 0, 0
		for _, b := range all[:from] {
			at += len(b.Requests)
		}
		if err := cut.transactions(func(x *replica.Txn) bool {
			switch {
			case x.Zxid == zxids[at]:
				given++
			case x.Zxid != 0 || x.Term == terms[len(terms)-1] || all[from].NewTerm || x.Term != all[from].Term:
				t.Errorf("log from entry %d on: transaction %d has zxid %v, want %v", all[from].Index, at, x.Zxid, zxids[at])
			}
			at++
			return true
		}); err != nil {
			t.Fatal(err)
		}
		if at != len(zxids) || given == 0 && all[from].Index < all[len(all)-1].Index {
			t.Errorf("log from entry %d on: %d transactions of %d, %d with a zxid", all[from].Index, at, len(zxids), given)
		}
	}
}

func TestInspect_State(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	serve(t, dir, 100_000, func(c *zk.Conn) { fill(t, c) })
	znodes := lines[znodeJSON](t, Main, "--znodes", "--path", "/app", "--data", dir)
	if len(znodes) != 2 || znodes[0].Path != "/app" || string(znodes[0].Data) != "12" || znodes[0].Version != 1 || znodes[1].Path != "/app/n-0000000000" {
		t.Errorf("znodes %+v", znodes)
	}
	if s := znodes[0]; s.DataLength != 2 || s.NumChildren != 1 || s.EphemeralOwner != "0x0" || s.Czxid == s.Mzxid || s.Ctime == 0 || len(s.ACL) != 1 {
		t.Errorf("the Stat of /app is %+v, its ACL %v", s.StatJSON, s.ACL)
	}
	want := []sum{{"/", 6, 0, 67}, {"/app", 2, 0, 23}, {"/zookeeper", 3, 0, 43}}
	if got := lines[sum](t, Main, "--tree", dir); !slices.Equal(got, want) {
		t.Errorf("sums %v, want %v", got, want)
	}
	want = []sum{{"/app", 2, 0, 23}, {"/app/n-0000000000", 1, 0, 17}}
	if got := lines[sum](t, Main, "--tree", "--path", "/app", "--depth", "2", dir); !slices.Equal(got, want) {
		t.Errorf("sums below /app: %v", got)
	}
	if got := lines[sessionJSON](t, Main, "--sessions", filepath.Join(dir, "checkpoint.db")); len(got) != 0 {
		t.Errorf("sessions %v", got)
	}
	if _, out, _ := run(t, Main, dir); !strings.Contains(out, "log         whole") {
		t.Errorf("the description is\n%s", out)
	}
	status, _, stderr := run(t, Main, "--znodes", filepath.Join(dir, "wal"))
	if status != cli.Failed || !strings.Contains(stderr, "name the data directory") {
		t.Errorf("znodes of a log alone: %d %s", status, stderr)
	}
}

func TestInspect_Interval(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	serve(t, dir, 100_000, func(c *zk.Conn) { fill(t, c) })
	all := lines[txnJSON](t, Main, "--log", dir)
	got := lines[txnJSON](t, Main, "--log", "--from", all[2].Zxid, "--to", all[4].Zxid, dir)
	if len(got) != 3 || got[0].Zxid != all[2].Zxid || got[2].Zxid != all[4].Zxid {
		t.Errorf("from %s to %s: %v", all[2].Zxid, all[4].Zxid, got)
	}
	if got := lines[txnJSON](t, Main, "--log", "--from", all[0].Time, "--to", all[len(all)-1].Time, dir); len(got) != len(all) {
		t.Errorf("%d of %d transactions between the times of the first and the last one", len(got), len(all))
	}
	if got := lines[txnJSON](t, Main, "--log", "--to", "2001-02-03", dir); len(got) != 0 {
		t.Errorf("%d transactions before the server began", len(got))
	}
}

// The history of a znode has its changes only, and the end of its session.
func TestHistory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	serve(t, dir, 100_000, func(c *zk.Conn) { fill(t, c) })
	for _, x := range []struct {
		args []string
		want []string
	}{
		{[]string{"/app"}, []string{"create /app", "setData /app", "setACL /app"}},
		{[]string{"/app/m"}, []string{"multi ", "create /app/m", "setData /app/m", "delete /app/m"}},
		{[]string{"/app/e"}, []string{"create /app/e", "closeSession ", "deleted /app/e"}},
		{[]string{"/app/n-0000000000"}, []string{"create /app/n-0000000000"}},
	} {
		for path, known := range map[string]bool{dir: true, filepath.Join(dir, "wal"): false} {
			var got []string
			for _, txn := range lines[txnJSON](t, History, append(x.args, path)...) {
				got = append(got, txn.Op+" "+txn.Path)
				for _, op := range txn.Ops {
					got = append(got, op.Op+" "+op.Path)
				}
				for _, deleted := range txn.Deleted {
					got = append(got, "deleted "+deleted)
				}
			}
			if known && !slices.Equal(got, x.want) || !known && len(got) < len(x.want) {
				t.Errorf("history %v %s:\n%q\nwant\n%q", x.args, path, got, x.want)
			}
		}
	}
	status, out, stderr := run(t, History, "/none", dir)
	if status != cli.OK || out != "" || !strings.Contains(stderr, "no change of /none; the log begins at ") {
		t.Errorf("history of a znode that never was: %d %q %q", status, out, stderr)
	}
	status, out, stderr = run(t, History, "/app", filepath.Join(dir, "checkpoint.db"))
	if status != cli.Failed || out != "" || !strings.Contains(stderr, "holds no transactions, so it does not tell") {
		t.Errorf("history of a checkpoint: %d %q %q", status, out, stderr)
	}
}

// What precedes damage is printed. The error names file and offset.
func TestInspect_Damage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	serve(t, dir, 100_000, func(c *zk.Conn) { fill(t, c) })
	all := lines[txnJSON](t, Main, "--log", dir)
	segment := filepath.Join(dir, "wal", "0000000000000001.wal")
	b, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(b), "/app/n-") // the third transaction
	b[at] ^= 1
	if err := os.WriteFile(segment, b, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, segment} {
		status, out, stderr := run(t, Main, "--log", "-output", "json", path)
		if n := strings.Count(out, "\n"); status != cli.Failed || n != 2 || !strings.Contains(stderr, "0000000000000001.wal at offset ") {
			t.Errorf("%s: status %d, %d transactions\n%s", path, status, n, stderr)
		}
	}
	// The last append is torn if nothing follows it.
	clear(b[at:])
	if err := os.WriteFile(segment, b, 0o600); err != nil {
		t.Fatal(err)
	}
	status, out, stderr := run(t, Main, segment)
	if n := strings.Count(out, "\n"); status != cli.OK || n != 2 || !strings.Contains(stderr, "an append that was never acknowledged") {
		t.Errorf("torn: status %d, %d transactions of %d\n%s", status, n, len(all), stderr)
	}
}

// A running server is not disturbed, and its data can be read.
func TestInspect_OfARunningServer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	serve(t, dir, 10, func(c *zk.Conn) {
		want := fill(t, c)
		for i := range 50 {
			if _, err := c.Set("/app", nil, -1); err != nil {
				t.Fatal(err)
			}
			want = append(want, "setData /app 0")
			if i%10 == 0 {
				if got := said(lines[txnJSON](t, Main, "--log", dir)); !slices.Equal(got, want) {
					t.Fatalf("write %d: the log says\n%q\nwant\n%q", i, got, want)
				}
			}
		}
	})
}

func TestInspect_CommandLine(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("no checkpoint"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		main   cli.Main
		args   []string
		status int
		stderr string
	}{
		{Main, nil, 2, "name a data directory"},
		{Main, []string{"--log-dir", dir, dir, dir}, 2, "for a single data directory"},
		{Main, []string{"--log", "--tree", dir}, 2, "exclude each other"},
		{Main, []string{"-output", "json", text}, 2, "say what to print"},
		{Main, []string{"--log", "--from", "yesterday", dir}, 2, "name a zxid"},
		{Main, []string{"--znodes", "--path", "app", dir}, 2, "path"},
		{Main, []string{text}, 1, "corrupt checkpoint"},
		{Main, []string{"--log", filepath.Join(dir, "none")}, 1, "no such file"},
		{Main, []string{"--log", dir}, 1, "no state"},
		{History, []string{"/app"}, 2, "name a znode"},
		{History, []string{"app", dir}, 2, "path"},
	} {
		status, _, stderr := run(t, c.main, c.args...)
		if status != c.status || !strings.Contains(stderr, c.stderr) {
			t.Errorf("%v: status %d\n%swant %d, %s", c.args, status, stderr, c.status, c.stderr)
		}
	}
	for _, main := range []cli.Main{Main, History} {
		if status, out, _ := run(t, main, "--help"); status != cli.OK || !strings.HasPrefix(out, "usage: gozkd ") {
			t.Error(out)
		}
	}
}
