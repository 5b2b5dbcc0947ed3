package inspect

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/backup"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/replica"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/history"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// A base within an object of another writer, as a merge of objects leaves it, is no gap, and no
// transaction is printed twice.
func TestInspect_ArchiveOfTwoWriters(t *testing.T) {
	dir, late := filepath.Join(t.TempDir(), "data"), watchdog.Context(t, time.Minute)
	one, other := t.TempDir(), t.TempDir()
	matching := func(folder, pattern string) []string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	url := func(folder string) string { return "file:///" + strings.TrimPrefix(filepath.ToSlash(folder), "/") }
	const logs, bases = "*/log/*", "*/base/*/*.last"
	serveWith(t, dir, 100_000, func(c *zk.Conn, srv *server.Server) {
		// ship archives until the folder has that many objects, more than the first ones.
		ship := func(folder, pattern string, more int, every time.Duration) {
			t.Helper()
			s, err := store.Open(url(folder), os.Getenv)
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			shipper := archive.New(archive.Config{Store: s, Logger: hclog.NewNullLogger(), Interval: 20 * time.Millisecond, BaseInterval: every, BaseBytes: 1 << 30})
			want := len(matching(folder, pattern)) + more
			// Stopped by stop, awaited below.
			go func() { defer close(ended); shipper.Run(ctx, srv.Backups()) }()
			for look := time.Tick(20 * time.Millisecond); len(matching(folder, pattern)) < want; <-look {
				if late.Err() != nil {
					t.Fatalf("%s is not in %s within a minute", pattern, folder)
				}
			}
			stop()
			<-ended
		}
		set := func(data string) {
			t.Helper()
			if _, err := c.Set("/app", []byte(data), -1); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Create("/app", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
		ship(one, bases, 1, time.Hour)
		if err := os.CopyFS(other, os.DirFS(one)); err != nil {
			t.Fatal(err)
		}
		set("1")
		ship(one, bases, 1, time.Nanosecond)
		set("2")
		ship(one, logs, 1, time.Hour)
		ship(other, logs, 1, time.Hour) // a single object with both changes
		set("3")
		ship(other, logs, 1, time.Hour)
	})
	first := matching(one, logs)[0] // with it the base between the changes is reached
	if err := os.Remove(first); err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{logs, "*/base/*/*"} {
		for _, file := range matching(one, pattern) {
			to := filepath.Join(other, strings.TrimPrefix(file, one))
			data, err := os.ReadFile(file)
			if err := errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, data, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	status, out, stderr := run(t, History, "--data", "/app", url(other))
	if status != cli.OK || strings.Count(out, "setData /app") != 3 || stderr != "" {
		t.Errorf("status %d\n%s%s", status, out, stderr)
	}
}

// An archive holds the same transactions as the log of the server that wrote it, and its last
// state.
func TestInspect_Archive(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	folder := filepath.ToSlash(t.TempDir())
	url := "file:///" + strings.TrimPrefix(folder, "/")
	s, err := store.Open(url, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	serveWith(t, dir, 100_000, func(c *zk.Conn, srv *server.Server) {
		want = fill(t, c)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		shipper := archive.New(archive.Config{Store: s, Logger: hclog.NewNullLogger(), Interval: 20 * time.Millisecond, BaseInterval: time.Hour, BaseBytes: 1 << 30})
		// Stopped by stop, awaited below.
		go func() { defer close(ended); shipper.Run(ctx, srv.Backups()) }()
		look := time.NewTicker(20 * time.Millisecond)
		defer look.Stop()
		based := false // the first base has everything so far; then come the writes of the archive's log
		for n, late := 0, watchdog.Context(t, time.Minute); ; <-look.C {
			if status, _, _ := run(t, Main, "--tree", url); !based && status == cli.OK {
				based = true
				change(t, c)
				if _, err := c.Set("/app", []byte("archived"), -1); err != nil {
					t.Fatal(err)
				}
			}
			status, out, stderr := run(t, History, "/app", url)
			if n = strings.Count(out, "setData /app"); based && status == cli.OK && n == 1 && strings.Contains(out, " ok ") {
				break
			}
			if late.Err() != nil {
				t.Fatalf("no change is in the archive within a minute: %d\n%s%s", status, out, stderr)
			}
		}
		stop()
		<-ended
	})
	znodes := lines[znodeJSON](t, Main, "--znodes", "--path", "/app", "--data", url)
	if len(want) == 0 || len(znodes) == 0 || string(znodes[0].Data) != "archived" {
		t.Errorf("znodes in the archive: %+v", znodes)
	}
	inLog := lines[txnJSON](t, History, "/app", dir)
	inArchive := lines[txnJSON](t, History, "/app", url)
	last := inLog[len(inLog)-1]
	last.Uncommitted = false
	if len(inArchive) != 1 || mustJSON(t, inArchive[0]) != mustJSON(t, last) {
		t.Errorf("the archive says %s, the log %s", mustJSON(t, inArchive), mustJSON(t, last))
	}
	// REST answers from the same archive. It alone passes over the multi that creates and deletes
	// /c/twice, because there is no state that it could show.
	a, err := archive.Open(t.Context(), s, "")
	if err != nil {
		t.Fatal(err)
	}
	rest := backup.NewHistory(s, func() uint64 { return a.Ensemble })
	for _, path := range []string{"/app", "/c", "/c/n-0000000001", "/c/e", "/c/m", "/c/twice"} {
		var command, served []string
		for _, txn := range lines[txnJSON](t, History, path, url) {
			command = append(command, strings.Join([]string{txn.Zxid, txn.Time, txn.Op, txn.Session}, " "))
		}
		page, err := rest.Changes(t.Context(), history.Query{Path: path, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range slices.Backward(page.Changes) {
			if c.Kind != history.Earlier {
				served = append(served, strings.Join([]string{c.Zxid.String(), timeText(c.Time), c.Op, c.Session.String()}, " "))
			}
		}
		if path == "/c/twice" {
			command = command[1:]
		}
		if len(command) == 0 || !slices.Equal(command, served) {
			t.Errorf("%s: gozkd history says\n%q\nand REST\n%q", path, command, served)
		}
	}
	// What precedes damage after the base is printed beside the error.
	logs, err := filepath.Glob(filepath.Join(folder, "*/log/*"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	for _, name := range logs {
		if err := os.Truncate(name, 40); err != nil {
			t.Fatal(err)
		}
	}
	for _, mode := range []string{"--znodes", "--tree", "--sessions"} {
		status, out, stderr := run(t, Main, mode, url)
		if status != cli.Failed || out == "" || !strings.Contains(stderr, filepath.Base(logs[0])) {
			t.Errorf("%s with damage: status %d\n%s%s", mode, status, out, stderr)
		}
	}
}

// change makes each kind of change below /c.
func change(t *testing.T, c *zk.Conn) {
	t.Helper()
	open := zk.WorldACL(zk.PermAll)
	create := func(path string, flags int32) error { _, err := c.Create(path, nil, flags, open); return err }
	set := func(path string) error { _, err := c.Set(path, []byte("x"), -1); return err }
	multi := func(ops ...any) error { _, err := c.Multi(ops...); return err }
	m, twice := "/c/m", "/c/twice"
	err := errors.Join(create("/c", 0), create("/c/e", zk.FlagEphemeral), create("/c/n-", zk.FlagSequence), set("/c"), set("/c/e"),
		c.Delete("/c/e", -1), create("/c/e", zk.FlagEphemeral), c.Delete("/c/n-0000000001", -1),
		multi(&zk.CreateRequest{Path: m, Acl: open}, &zk.SetDataRequest{Path: m, Version: -1}, &zk.CheckVersionRequest{Path: "/c", Version: 1}),
		multi(&zk.SetDataRequest{Path: "/c", Version: -1}, &zk.DeleteRequest{Path: m, Version: -1}, &zk.CreateRequest{Path: m, Acl: open}),
		multi(&zk.CreateRequest{Path: twice, Acl: open}, &zk.DeleteRequest{Path: twice, Version: -1}), create(twice, 0),
	)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.SetACL("/c", zk.WorldACL(zk.PermAll), -1); err != nil {
		t.Fatal(err)
	}
	if err := multi(&zk.SetDataRequest{Path: "/c", Version: -1}, &zk.SetDataRequest{Path: "/c", Version: 77}); !errors.Is(err, zk.ErrBadVersion) {
		t.Fatal(err)
	}
}

// The members are data of /zookeeper/config, and change when a reconfig is done.
func TestHistory_Members(t *testing.T) {
	m := &replica.Replica{Tree: datatree.New(datatree.Options{})}
	h, begun, got := replica.Filter{Path: "/zookeeper/config"}, proto.Zxid(0), []*replica.Txn{}
	m.HandOut(func(txn *replica.Txn) bool {
		if begun = max(begun, txn.Zxid); h.Change(txn) != nil {
			got = append(got, txn)
		}
		return true
	})
	apply := func(r datatree.Request) {
		m.Apply([]consensus.Batch{{Requests: []consensus.Request{{Payload: r.Append(nil)}}}})
	}
	apply(datatree.Request{Op: proto.OpInitConfig, Body: []byte("server.1=h:1:2:participant;3\nversion=0")})
	apply(datatree.Request{Op: proto.OpConfigDone, Body: datatree.ConfigDoneBody{Serial: begun + 1}.Append(nil)}) // another one
	apply(datatree.Request{Op: proto.OpConfigDone, Body: datatree.ConfigDoneBody{Serial: begun - 1}.Append(nil)})
	if len(got) != 1 || got[0].Op != "configDone" || !strings.HasPrefix(string(got[0].Data), "server.1=h:1:2:participant;") {
		t.Errorf("%+v", got)
	}
}
