package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/internal/vfs"
)

// withArchive calls f in virtual time, with what an ensemble has archived in a minute. seed is that
// of its writes.
func withArchive(t *testing.T, seed uint64, f func(t *testing.T, s *shipping)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newShipping(t, seed, 1)
		ctx, cancel := context.WithCancel(t.Context())
		wait := s.write(ctx)
		time.Sleep(time.Minute)
		cancel()
		wait()
		s.end()
		f(t, s)
	})
}

// prepare returns a standby in a directory, which has the state of the archive.
func (s *shipping) prepare(into string) *Standby {
	s.t.Helper()
	b := &Standby{Store: s.memory.Client(), URL: "file:///a", Into: into, Interval: shipInterval, Logger: s.logger}
	if err := b.Prepare(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	return b
}

// A promotion that is interrupted before it removes the standby is finished by the next one, and by
// serve. Neither removes what no standby has made, or what a standby uses.
func TestPromote_InterruptedAtTheEnd(t *testing.T) {
	into, copied := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	withArchive(t, 1, func(t *testing.T, s *shipping) {
		b := s.prepare(into)
		interrupted := func() {
			if err := errors.Join(os.RemoveAll(b.Dir()), os.CopyFS(b.Dir(), os.DirFS(copied))); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.CopyFS(copied, os.DirFS(b.Dir())); err != nil {
			t.Fatal(err)
		}
		mustRun(t, Promote, into, "--unfenced")
		interrupted()
		lock, err := vfs.OS{}.Lock(filepath.Join(b.Dir(), "LOCK"))
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckServable(into); !errors.Is(err, vfs.ErrLocked) {
			t.Errorf("a standby that runs is removed: %v", err)
		}
		if err := lock.Close(); err != nil {
			t.Fatal(err)
		}
		for name, finish := range map[string]func() error{
			"serve": func() error { return CheckServable(into) },
			"promote": func() error {
				if status, out, said := run(t, Promote, into); status != cli.OK || !strings.Contains(out, "gozkd serve --data-dir "+into) {
					return fmt.Errorf("status %d, %s%s", status, out, said)
				}
				return nil
			},
		} {
			interrupted()
			if err := finish(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := os.Lstat(b.Dir()); err == nil {
				t.Errorf("%s leaves the standby", name)
			}
		}
		foreign := filepath.Join(b.Dir(), "x")
		if err := errors.Join(os.Mkdir(b.Dir(), 0o700), os.WriteFile(foreign, nil, 0o600), CheckServable(into)); err != nil {
			t.Error(err)
		}
		if status, _, said := run(t, Promote, into); status == cli.OK || !strings.Contains(said, "has the data of a server") {
			t.Errorf("promoted again: status %d, %s", status, said)
		}
		if _, err := os.Lstat(foreign); err != nil {
			t.Error(err)
		}
	})
}

// blockingStore puts a directory where a promotion will write a file.
type blockingStore struct {
	store.Store
	dir string
}

func (b blockingStore) List(ctx context.Context, prefix, after string) ([]store.Object, error) {
	list, err := b.Store.List(ctx, prefix, after)
	if prefix == "" { // after the fence, and before the promotion writes
		err = errors.Join(err, os.MkdirAll(filepath.Join(b.dir, "x"), 0o700))
	}
	return list, err
}

// A promotion that is interrupted between the log and the checkpoint can be repeated, also with a
// dataLogDir. The log of somebody else is left alone. The fence names the directory.
func TestPromote_LogDirAgain(t *testing.T) {
	t.Chdir(t.TempDir())
	into, logs, other := "a", "logs", "other"
	withArchive(t, 1, func(t *testing.T, s *shipping) {
		s.prepare(into)
		if err := os.MkdirAll(filepath.Join(other, "wal"), 0o700); err != nil {
			t.Fatal(err)
		}
		memory := s.memory.Client()
		if _, err := promote(t.Context(), memory, target{1, into, other}, time.Now()); err == nil || !strings.Contains(err.Error(), "it holds wal") {
			t.Errorf("somebody else's log: %v", err)
		}
		blocking := blockingStore{memory, filepath.Join(into, "checkpoint.db.new")}
		if _, err := promote(t.Context(), blocking, target{1, into, logs}, time.Now()); err == nil {
			t.Fatal("promoted without a checkpoint")
		}
		if _, err := os.Lstat(filepath.Join(logs, "wal")); err != nil {
			t.Fatal(err)
		}
		if _, err := promote(t.Context(), memory, target{1, into, logs}, time.Now()); err != nil {
			t.Fatal(err)
		}
		if _, err := readSource(into, logs); err != nil {
			t.Error(err)
		}
		whole, err := filepath.Abs(into)
		if err != nil {
			t.Fatal(err)
		}
		s.memory.Each(func(name string, data []byte) {
			if strings.Contains(name, "/promoted/") && !bytes.HasSuffix(data, []byte(" in "+whole+"\n")) {
				t.Errorf("the fence is %q", data)
			}
		})
	})
}

// A standby empties no folder that no standby has begun, and goes on with one that a standby was
// killed in.
func TestStandby_ForeignFolder(t *testing.T) {
	root := t.TempDir()
	withArchive(t, 1, func(t *testing.T, s *shipping) {
		for name, c := range map[string]struct{ file, text, says string }{
			"foreign":         {"notes", "", "it holds notes"},
			"foreign source":  {"source", "package main", "it holds source"},
			"hardly begun":    {"LOCK", "", ""},
			"killed in start": {"source", "s3://b/c\n", ""},
		} {
			file := filepath.Join(root, name, standbyFolder, c.file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(c.text), 0o600)); err != nil {
				t.Fatal(err)
			}
			b := &Standby{Store: s.memory.Client(), URL: "file:///a", Into: filepath.Join(root, name), Logger: s.logger}
			err := b.Prepare(t.Context())
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), b.Dir()+" is not empty, "+c.says) {
				t.Errorf("%s: %v", name, err)
			}
			if text, err := os.ReadFile(file); c.says != "" && (err != nil || string(text) != c.text) {
				t.Errorf("%s: the file is %q, %v", name, text, err)
			}
		}
	})
}

// A standby says, once, that another standby was promoted, that its own promotion was interrupted,
// and that the archive has later writes of another ensemble.
func TestStandby_Warns(t *testing.T) {
	root := t.TempDir()
	withArchive(t, 1, func(t *testing.T, s *shipping) {
		ctx, id := t.Context(), s.open().Ensemble
		follow := func(into string) {
			p := s.stand(filepath.Join(root, into))
			time.Sleep(3 * wholeRounds * shipInterval)
			p.stop()
		}
		says := func(text string, want int) {
			t.Helper()
			if n := s.log.Count(text); n != want {
				t.Errorf("%q was logged %d times, not %d:\n%s", text, n, want, s.log.String())
			}
		}
		follow("a")
		says("another standby was promoted", 0)
		says("later writes of another ensemble", 0)
		fence := archive.NewFence(id)
		if err := archive.Fence(ctx, s.memory.Client(), fence, "x"); err != nil {
			t.Fatal(err)
		}
		chain := strings.Repeat("00", 16)
		later := fmt.Sprintf("00000000000000aa/log/%020d-%020d-%s-%s-%013d", 1, 2, chain, chain, time.Now().UnixMilli())
		if err := s.memory.Client().Put(ctx, later, nil); err != nil {
			t.Fatal(err)
		}
		follow("a")
		says("another standby was promoted", 1)
		says("other=00000000000000aa", 1)
		if err := os.WriteFile(filepath.Join(root, "a", standbyFolder, "fence"), []byte(fence), 0o600); err != nil {
			t.Fatal(err)
		}
		follow("a")
		says("another standby was promoted", 1)
		says("the promotion of this standby was interrupted", 1)
	})
}
