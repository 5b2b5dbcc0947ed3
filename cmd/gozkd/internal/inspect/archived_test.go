package inspect

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/serversource"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
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
			go func() { defer close(ended); shipper.Run(ctx, serversource.Of(srv)) }()
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
