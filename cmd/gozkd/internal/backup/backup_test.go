package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"github.com/gozkd/gozkd/admin"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(watchdog.Watch(m)) }

// A directory counts as empty with the files that a server without data has, also if a server was
// killed while it wrote its token, and not with files of other names.
func TestCheckEmpty(t *testing.T) {
	for name, empty := range map[string]bool{
		"myid": true, "initialize": true, "lost+found": true, "admin.token": true, "admin.token.4103824562": true,
		"admin.token.old": false, "admin.tokens": false, "wal": false, "snapshot.0": false, "other": false,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := CheckEmpty(dir); (err == nil) != empty {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := CheckEmpty(filepath.Join(t.TempDir(), "missing")); err != nil {
		t.Error(err)
	}
}

// sessionTimeout is so long that no client disconnects, and no session expires, because the machine
// is slow.
const sessionTimeout = time.Hour

// serve runs a server with a data directory until stop.
func serve(t *testing.T, cfg server.Config) (s *server.Server, stop func()) {
	t.Helper()
	cfg.InProcess, cfg.Tick = cfg.Listener == nil, 200*time.Millisecond
	cfg.MaxSessionTimeout = sessionTimeout // the default is 20 ticks
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	closed := false
	stop = func() {
		if !closed {
			closed = true
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(stop)
	return s, stop
}

func connect(t *testing.T, s *server.Server) (*zk.Conn, <-chan zk.Event) {
	t.Helper()
	c, events, err := zk.Connect([]string{s.ConnectString()}, sessionTimeout, zk.WithDialer(s.Dialer()), zk.WithLogger(log.New(io.Discard, "", 0)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, events
}

// fill creates znodes of each kind, by two clients that keep their sessions.
func fill(t *testing.T, s *server.Server, n int) {
	t.Helper()
	a, _ := connect(t, s)
	b, _ := connect(t, s)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	make := func(c *zk.Conn, path string, flags int32) {
		t.Helper()
		_, err := c.Create(path, []byte(path), flags, zk.WorldACL(zk.PermAll))
		must(err)
	}
	make(a, "/app", 0)
	make(a, "/app/locks", 0)
	for i := range n {
		make(a, fmt.Sprintf("/app/%d", i), 0)
		make(b, "/app/locks/l-", zk.FlagEphemeral|zk.FlagSequence)
		if i%3 == 0 {
			_, err := b.Set(fmt.Sprintf("/app/%d", i), bytes.Repeat([]byte("x"), i), -1)
			must(err)
		}
		if i%5 == 0 {
			must(a.Delete(fmt.Sprintf("/app/%d", i), -1))
			_, err := a.Multi(&zk.CheckVersionRequest{Path: "/app", Version: 77}, &zk.DeleteRequest{Path: "/app/locks", Version: -1})
			if err == nil {
				t.Fatal("a multi that can't succeed did")
			}
		}
	}
	must(a.AddAuth("digest", []byte("user:secret")))
	_, err := a.Create("/private", nil, 0, zk.AuthACL(zk.PermAll))
	must(err)
}

func noenv(string) string { return "" }

// run runs a command.
func run(t *testing.T, main cli.Main, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	status = main(t.Context(), args, cli.Env{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: noenv, Server: config.LocalServer(noenv, nil)})
	return status, out.String(), errs.String()
}

// inspect describes a directory, whose log may be in a second one, as `gozkd inspect` does.
func inspect(ctx context.Context, args []string, env cli.Env) int {
	logDir := ""
	if len(args) == 2 {
		logDir = args[1]
	}
	return Describe(ctx, cli.Command{Env: env, Name: "inspect"}, args[:1], logDir)
}

func mustRun(t *testing.T, main cli.Main, args ...string) (stdout string) {
	t.Helper()
	status, stdout, stderr := run(t, main, args...)
	if status != cli.OK {
		t.Fatalf("%v: status %d\n%s%s", args, status, stdout, stderr)
	}
	return stdout
}

func fromFile(path string) func() (*source, error) {
	return func() (*source, error) { return readSource(path, "") }
}

func mustRead(t *testing.T, path string) *source {
	t.Helper()
	s, err := readSource(path, "")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A backup of a stopped server holds the same state as a backup of the running server, whatever the
// age of its checkpoint. Reading changes nothing.
func TestBackup_OfARunningServerAndOfItsDirectory(t *testing.T) {
	for _, snapCount := range []int{7, 100_000} {
		dir := t.TempDir()
		cfg := server.Config{Dir: filepath.Join(dir, "data"), LogDir: filepath.Join(dir, "log"), SnapCount: snapCount, SuperDigest: "super:D/InIHSb7yEEbrWz8b9l71RjZJU="}
		s, stop := serve(t, cfg)
		fill(t, s, 40)
		web := httptest.NewServer(admin.New(s, admin.Options{Snapshot: true, Interval: -1}))
		secret := filepath.Join(dir, "secret")
		if err := os.WriteFile(secret, []byte("digest super:test\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		online, offline, copied := filepath.Join(dir, "online.db"), filepath.Join(dir, "offline.db"), filepath.Join(dir, "copied.db")
		mustRun(t, Backup, "--from", web.URL, "--auth-file", secret, online)
		if status, _, stderr := run(t, Backup, "--from", web.URL, filepath.Join(dir, "nobody.db")); status != 1 || !strings.Contains(stderr, "403 Forbidden") {
			t.Errorf("by nobody: %d %s", status, stderr)
		}
		const inUse = "in use: stop the process that holds the lock, or choose another directory\n  Or copy the state of the running server: gozkd backup"
		if status, _, stderr := run(t, Backup, "--from", cfg.Dir, "--log-dir", cfg.LogDir, offline); status != 1 || !strings.Contains(stderr, inUse) {
			t.Errorf("of a directory in use: %d %s", status, stderr)
		}
		if status, _, stderr := run(t, inspect, cfg.Dir, cfg.LogDir); status != 1 || !strings.Contains(stderr, inUse) {
			t.Errorf("inspection of a directory in use: %d %s", status, stderr)
		}
		web.Close()
		stop()
		before := vfstest.Fingerprint(t, cfg.Dir) + vfstest.Fingerprint(t, cfg.LogDir)
		out := mustRun(t, Backup, "--from", cfg.Dir, "--log-dir", cfg.LogDir, offline)
		if !strings.Contains(out, "read back and verified") || !strings.Contains(out, "; 2 sessions") {
			t.Error(out)
		}
		if out := mustRun(t, inspect, cfg.Dir, cfg.LogDir); !strings.Contains(out, "log         whole") {
			t.Error(out)
		}
		if after := vfstest.Fingerprint(t, cfg.Dir) + vfstest.Fingerprint(t, cfg.LogDir); after != before {
			t.Error("the source was changed")
		}
		mustRun(t, Backup, "--from", offline, copied)
		a, b, c := mustRead(t, online), mustRead(t, offline), mustRead(t, copied)
		if a.tree.Digest() != b.tree.Digest() || a.tree.LastZxid() != b.tree.LastZxid() || a.held.Index != b.held.Index || a.held.Cluster != b.held.Cluster {
			t.Errorf("SnapCount %d: online zxid %v, %d znodes, %+v\noffline %v, %d, %+v", snapCount,
				a.tree.LastZxid(), a.tree.NumZnodes(), a.held, b.tree.LastZxid(), b.tree.NumZnodes(), b.held)
		}
		if c.tree.Digest() != b.tree.Digest() || c.held.Index != b.held.Index {
			t.Errorf("a copy of a backup is another: %+v", c.held)
		}
	}
}

// content returns all znodes that no session owns, without those fields of Stat that the deletion
// of a child changes.
func content(t *testing.T, tree *datatree.Tree) map[string]string {
	t.Helper()
	all := make(map[string]string)
	super := datatree.Caller{SkipACL: true}
	var walk func(path string)
	walk = func(path string) {
		data, stat, code := tree.GetData(path, super)
		acl, _, aclCode := tree.GetACL(path, super)
		if code != proto.OK || aclCode != proto.OK {
			t.Fatalf("%s: %v %v", path, code, aclCode)
		}
		if stat.EphemeralOwner > 0 || path == "/zookeeper/config" {
			return
		}
		stat.Pzxid, stat.Cversion, stat.NumChildren = 0, 0, 0
		all[path] = fmt.Sprintf("%q %v %+v", data, acl, stat)
		list, _, _ := tree.AppendChildren(nil, path, super)
		d := jute.NewDecoder(list)
		for n := d.Int(); n > 0; n-- {
			walk(strings.TrimSuffix(path, "/") + "/" + d.String())
		}
	}
	walk("/")
	return all
}

// A restored server has the content of the backup, without sessions and ephemerals, and continues
// with zxids above all that the old server issued since.
func TestRestore(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "old")
	s, stop := serve(t, server.Config{Dir: old, SnapCount: 50})
	fill(t, s, 150) // so many writes that a second checkpoint is made, however slow the first one was
	stop()
	copied := filepath.Join(dir, "copy.db") // as by cp
	data, err := os.ReadFile(checkpointIn(old))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(copied, data, 0o400); err != nil {
		t.Fatal(err)
	}
	s, stop = serve(t, server.Config{Dir: old, SnapCount: 50}) // the old one goes on
	c, _ := connect(t, s)
	if _, err := c.Create("/later", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	stop()
	gone := mustRead(t, old)

	for _, from := range []string{copied, old} {
		was := mustRead(t, from)
		before, fresh := vfstest.Fingerprint(t, from), filepath.Join(t.TempDir(), "fresh")
		out := mustRun(t, Restore, "--from", from, "--data-dir", fresh, "--id=9")
		if vfstest.Fingerprint(t, from) != before {
			t.Errorf("%s was changed", from)
		}
		if want := fmt.Sprintf("closed      %d sessions and their %d ephemeral znodes", was.tree.NumSessions(), was.tree.NumEphemerals()); !strings.Contains(out, want) || was.tree.NumSessions() == 0 {
			t.Errorf("%s\nwant %s", out, want)
		}
		if strings.Contains(out, "WARNING") {
			t.Errorf("it was alone:\n%s", out)
		}
		is := mustRead(t, fresh)
		if want, got := content(t, was.tree), content(t, is.tree); !maps.Equal(want, got) || len(want) < 30 {
			t.Errorf("%s: the content is another", from)
		}
		if is.tree.NumSessions() != 0 || is.tree.NumEphemerals() != 0 || is.held.Cluster == was.held.Cluster || is.held.Cluster == 0 || is.held.Member != 9 || !slices.Equal(is.held.Voters, []uint64{9}) {
			t.Errorf("%+v", is.held)
		}
		if is.tree.LastZxid() <= gone.tree.LastZxid() || is.held.Term <= gone.held.Term {
			t.Errorf("zxid %v and term %d; the old one came to %v and %d", is.tree.LastZxid(), is.held.Term, gone.tree.LastZxid(), gone.held.Term)
		}
		s, stop := serve(t, server.Config{Dir: fresh, MemberID: 9})
		c, _ := connect(t, s)
		if _, err := c.Create("/new", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
		if _, stat, err := c.Get("/app/1"); err != nil || stat.Czxid > int64(was.tree.LastZxid()) {
			t.Errorf("%+v %v", stat, err)
		}
		if later, _, err := c.Exists("/later"); err != nil || later != (from == old) {
			t.Errorf("/later is there: %v %v", later, err)
		}
		stop()
		if status, _, stderr := run(t, Restore, "--from", copied, "--data-dir", fresh); status != 1 || !strings.Contains(stderr, "is not empty") {
			t.Errorf("into a directory with data: %d %s", status, stderr)
		}
	}
}

// A directory with only myid counts as empty. A checkpoint can be restored alone by the name of its
// file.
func TestRestore_TakesACheckpointAlone(t *testing.T) {
	dir := t.TempDir()
	data, fresh := filepath.Join(dir, "data"), filepath.Join(dir, "fresh")
	s, stop := serve(t, server.Config{Dir: data, SnapCount: 20})
	fill(t, s, 30)
	stop()
	if err := os.RemoveAll(filepath.Join(data, "wal")); err != nil {
		t.Fatal(err)
	}
	if status, out, stderr := run(t, inspect, data); status != 1 || !strings.Contains(out, "NOT WHOLE") || !strings.Contains(out, "znodes") || !strings.Contains(stderr, "is missing") {
		t.Errorf("%d\n%s%s", status, out, stderr)
	}
	if err := os.Mkdir(fresh, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(fresh, "myid"), []byte("3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := mustRun(t, Restore, "--from", checkpointIn(data), "--data-dir", fresh, "-o", "server.3=a:1:2", "-o", "server.4=b:1:2", "-o", "server.5=c:1:2")
	if !strings.Contains(out, "member 3 of the new ensemble") || !strings.Contains(out, "EMPTY data directory") {
		t.Error(out)
	}
	if is := mustRead(t, fresh); is.held.Member != 3 {
		t.Errorf("%+v", is.held)
	}
}

// The number of the server is in the directory of --into, if there is one: with another number
// serve would refuse the data. A number that another source gives must be the same.
func TestRestore_IntoNumber(t *testing.T) {
	dir := t.TempDir()
	data, fresh := filepath.Join(dir, "data"), filepath.Join(dir, "fresh")
	s, stop := serve(t, server.Config{Dir: data})
	fill(t, s, 3)
	stop()
	if err := os.Mkdir(fresh, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(fresh, "myid"), []byte("3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := run(t, Restore, "--from", data, "--into", fresh, "--id", "4"); status != 2 || !strings.Contains(stderr, "the data belongs to server 3") {
		t.Errorf("with another number: %d %s", status, stderr)
	}
	mustRun(t, Restore, "--from", data, "--into", fresh, "-o", "server.3=a:1:2", "-o", "server.4=b:1:2", "-o", "server.5=c:1:2")
	if is := mustRead(t, fresh); is.held.Member != 3 {
		t.Errorf("%+v", is.held)
	}
}

// A new data directory names its member, without which a member of an ensemble does not start.
// Directories of different ensembles can't be compared.
func TestRestore_WritesMyID(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	s, stop := serve(t, server.Config{Dir: data})
	fill(t, s, 3)
	stop()
	for id, into := range map[string]string{"2": filepath.Join(dir, "two"), "3": filepath.Join(dir, "three")} {
		mustRun(t, Restore, "--from", data, "--into", into, "--id", id)
		if text, err := os.ReadFile(filepath.Join(into, "myid")); string(text) != id+"\n" {
			t.Errorf("myid of %s is %q, %v", into, text, err)
		}
	}
	both := func(ctx context.Context, args []string, env cli.Env) int {
		return Describe(ctx, cli.Command{Env: env, Name: "inspect"}, args, "")
	}
	if status, _, stderr := run(t, both, filepath.Join(dir, "two"), filepath.Join(dir, "three")); status != cli.Failed || !strings.Contains(stderr, "can't be compared") {
		t.Errorf("%d %s", status, stderr)
	}
}

func TestSkipSince(t *testing.T) {
	now := time.Unix(2_000_000_000, 0)
	for _, c := range []struct {
		written time.Time
		want    uint64
	}{{time.Time{}, minSkip}, {now, minSkip}, {now.Add(time.Hour), minSkip}, {now.Add(-time.Hour), minSkip + 3600}} {
		if got := skipSince(c.written, now); got != c.want {
			t.Errorf("since %v: %d, want %d", c.written, got, c.want)
		}
	}
}

// A restore without room for more epochs is refused instead of overflowing.
func TestRestore_NoRoomForEpochs(t *testing.T) {
	tree := datatree.New(datatree.Options{})
	tree.SetLastZxid(proto.MakeZxid(1<<31-70_000, 5))
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	s, stop := serve(t, server.Config{Dir: data})
	fill(t, s, 0) // so that there is a time
	stop()
	held := mustRead(t, data).held
	file, fresh := filepath.Join(dir, "late.db"), filepath.Join(dir, "fresh")
	if err := held.WriteCheckpoint(file, tree.CaptureAll(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := restore(t.Context(), fromFile(file), target{1, fresh, fresh}, held.Time, false); err != nil {
		t.Error("there is room for 70,000:", err)
	}
	other := filepath.Join(dir, "other")
	_, err := restore(t.Context(), fromFile(file), target{1, other, other}, held.Time.Add(24*time.Hour), false)
	if err == nil || !strings.Contains(err.Error(), "leaves no room") {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "other")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// A restore from a member of several warns that writes may be lost. A restore from a lone member
// does not.
func TestReport_WarnsOfLostWrites(t *testing.T) {
	for _, c := range []struct {
		member uint64
		voters []uint64
		want   string
	}{
		{1, []uint64{1}, ""},
		{2, []uint64{1, 2, 3}, "dir holds the state of ONE of 3 voters."},
		{4, []uint64{1, 2, 3}, "dir holds the state of member 4, an observer or a former member."},
		{2, []uint64{1}, "dir holds the state of member 2, an observer or a former member."},
	} {
		var out strings.Builder
		r := &restored{from: &source{path: "dir", dir: true, held: consensus.SavedState{Member: c.member, Voters: c.voters}, tree: datatree.New(datatree.Options{})}}
		(&command{cli.Command{Env: cli.Env{Out: &out, Err: &out}}}).report(r, false)
		warned := strings.Contains(out.String(), "WARNING")
		if warned != (c.want != "") || !strings.Contains(out.String(), c.want) {
			t.Errorf("member %d of %v:\n%s", c.member, c.voters, &out)
		}
		if others := strings.Contains(out.String(), "Only then start the others"); others != warned {
			t.Errorf("member %d of %v, the others: %v", c.member, c.voters, others)
		}
	}
}

// A user without permission learns about --auth-file.
func TestBackup_NotAuthorized(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "Not authorized", http.StatusForbidden) }))
	defer web.Close()
	status, _, stderr := run(t, Backup, "--from", web.URL, filepath.Join(t.TempDir(), "backup.db"))
	if status != cli.Failed || !strings.Contains(stderr, "403 Forbidden: Not authorized; use --auth-file to name the superuser or a token") {
		t.Errorf("%d %s", status, stderr)
	}
}
