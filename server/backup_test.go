package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/server/identity"
)

// only restores a tree.
type only struct{ tree *datatree.Tree }

func (*only) Apply([]consensus.Batch)       {}
func (*only) Capture() consensus.Changes    { return nil }
func (*only) CaptureAll() consensus.Changes { return nil }

func (o *only) Restore(state iter.Seq2[[]byte, []byte]) (install func(), err error) {
	t, err := datatree.Restore(datatree.Options{}, state)
	return func() { o.tree = t }, err
}

// A backup of a server under load contains the complete state of its zxid, and leaves no files.
func TestBackup(t *testing.T) {
	for name, cfg := range map[string]server.Config{"disk": {Dir: t.TempDir(), SnapCount: 50}, "memory": {}} {
		t.Run(name, func(t *testing.T) {
			if cfg.Dir == "" {
				t.Setenv("TMPDIR", t.TempDir())
			}
			s := start(t, cfg)
			c := dialIn(t, s, 10*time.Second)
			stop := make(chan struct{})
			over := make(chan error, 1)
			// Stopped by stop, awaited through over.
			go func() {
				var err error
				for i := 0; err == nil; i++ {
					select {
					case <-stop:
						over <- nil
						return
					default:
						_, err = c.Create(fmt.Sprintf("/n%d", i), make([]byte, 100), 0, zk.WorldACL(zk.PermAll))
					}
				}
				over <- err
			}()
			for range 5 {
				before := s.Status().Zxid
				b, err := s.Backups().Make(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(t.TempDir(), "copy.db")
				f, err := os.Create(path)
				if err != nil {
					t.Fatal(err)
				}
				n, err := io.Copy(f, b)
				if err := errors.Join(err, f.Close(), b.Close()); err != nil || n != b.Size || n == 0 {
					t.Fatal(n, b.Size, err)
				}
				var o only
				if _, err := consensus.ReadCheckpoint(path, &o); err != nil {
					t.Fatal(err)
				}
				if int64(o.tree.LastZxid()) != b.Zxid || b.Zxid < before {
					t.Errorf("the backup holds the state of %v, and names 0x%x; the zxid before it was 0x%x", o.tree.LastZxid(), b.Zxid, before)
				}
				if err := o.tree.Check(); err != nil {
					t.Error(err)
				}
			}
			close(stop)
			if err := <-over; err != nil {
				t.Error(err)
			}
			dir := cfg.Dir
			if dir == "" {
				dir = os.TempDir()
			}
			if left, _ := filepath.Glob(filepath.Join(dir, ".gozkd-backup-*")); left != nil {
				t.Errorf("files that remain: %v", left)
			}
		})
	}
}

func TestBackup_WithoutAServer(t *testing.T) {
	s, err := server.New(server.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Backups().Make(t.Context()); !errors.Is(err, server.ErrNotStarted) {
		t.Errorf("before the start: %v", err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if b, err := s.Backups().Make(ctx); err == nil {
		t.Error(b.Close()) // the server may be faster than the check of the context
	} else if !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Backups().Make(t.Context()); !errors.Is(err, server.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

// The next start removes the remains of a backup that a crash has interrupted, and nothing else.
func TestBackup_LeftByACrash(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".gozkd-backup-1", "backup-mine"} {
		if err := os.MkdirAll(filepath.Join(dir, name, "x"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	start(t, server.Config{Dir: dir})
	if _, err := os.Stat(filepath.Join(dir, ".gozkd-backup-1")); err == nil {
		t.Error("it is still there")
	}
	if _, err := os.Stat(filepath.Join(dir, "backup-mine")); err != nil {
		t.Error(err)
	}
}

// A second server that is started with the data directory of a running server does not remove the
// backups of that.
func TestBackup_OfAnotherServer(t *testing.T) {
	dir := t.TempDir()
	start(t, server.Config{Dir: dir})
	folder := filepath.Join(dir, ".gozkd-backup-1")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err == nil {
		t.Fatal("two servers have one data directory")
	}
	if _, err := os.Stat(folder); err != nil {
		t.Error(err)
	}
}

// If a backup would leave no room for the log, it fails and leaves no files. The server goes on.
func TestBackup_NoRoom(t *testing.T) {
	dir := t.TempDir()
	s := start(t, server.Config{Dir: dir})
	s.LeaveRoom(math.MaxInt64)
	if b, err := s.Backups().Make(t.Context()); !errors.Is(err, server.ErrNoRoom) {
		t.Errorf("%v %v", b, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".gozkd-backup-*")); left != nil {
		t.Errorf("left: %v", left)
	}
	s.LeaveRoom(1)
	b, err := s.Backups().Make(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// Until there is another snapshot, the last one is that of the start.
func TestLastSnapshot(t *testing.T) {
	if _, _, ok := start(t, server.Config{}).Backups().LastSnapshot(); ok {
		t.Error("a server in memory has a snapshot")
	}
	cfg := server.Config{Dir: t.TempDir(), SnapCount: 10}
	begun := time.Now().Add(-2 * time.Second) // clocks of file systems are coarse
	s := start(t, cfg)
	if zxid, at, ok := s.Backups().LastSnapshot(); !ok || zxid != 0 || at.Before(begun) {
		t.Errorf("at first: 0x%x %v %t", zxid, at, ok)
	}
	c := dialIn(t, s, time.Minute)
	last := int64(0)
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for late := watchdog.Context(t, time.Minute); last == 0; <-look.C {
		if late.Err() != nil {
			t.Fatal("no snapshot within a minute")
		}
		if _, err := c.Set("/", nil, -1); err != nil {
			t.Fatal(err)
		}
		last, _, _ = s.Backups().LastSnapshot()
	}
	if now := s.Status().Zxid; last > now {
		t.Errorf("of zxid 0x%x, now it is 0x%x", last, now)
	}
	c.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := s.Backups().LastSnapshot(); ok {
		t.Error("a closed server has a last snapshot")
	}
	s = start(t, cfg)
	if zxid, _, ok := s.Backups().LastSnapshot(); !ok || zxid < last {
		t.Errorf("after a restart: 0x%x %t, it was 0x%x", zxid, ok, last)
	}
}

// ShedConnections closes a part of the connections, and their sessions live on.
func TestShedConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, first := hotServer(t)
		for range 9 {
			nc, err := s.Dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = nc.Close() })
			(&raw{t: t, nc: nc}).connect(30000, 0, make([]byte, 16))
		}
		for _, step := range []struct{ percent, closed, left int }{{0, 0, 10}, {-5, 0, 10}, {25, 3, 7}, {1, 1, 6}, {100, 6, 0}, {200, 0, 0}} {
			got := s.ShedConnections(step.percent)
			synctest.Wait()
			if left := len(s.Facts().Connections()); got != step.closed || left != step.left {
				t.Errorf("%d %%: %d closed and %d left, want %d and %d", step.percent, got, left, step.closed, step.left)
			}
		}
		nc, err := s.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = nc.Close() })
		again := &raw{t: t, nc: nc}
		if again.connect(30000, first.id, first.pass); again.id != first.id || len(s.Facts().Sessions()) != 10 {
			t.Errorf("session %v came back as %v, there are %d", first.id, again.id, len(s.Facts().Sessions()))
		}
	})
}

// An identity of the digest scheme has the configured hash. The values are those of ZooKeeper 3.9.5
// with DigestAuthenticationProvider.digestAlg.
func TestDigestAlgorithm_Configured(t *testing.T) {
	for algorithm, super := range map[string]string{
		"":         "super:D/InIHSb7yEEbrWz8b9l71RjZJU=",
		"SHA-256":  "super:wjySwxg860UATFtciuZ1lpzrCHrPeov6SPu/ZD56uig=",
		"SHA3-256": "super:cRy/KPYuDpW/dtsepniTMpuiuupnWgdU9txltIfv3hA=",
	} {
		s := start(t, server.Config{DigestAlgorithm: algorithm, SuperDigest: super})
		if err := s.Identities().AuthorizeSuper("digest", "super:test", "127.0.0.1"); err != nil {
			t.Errorf("%q: super:test is not the superuser: %v", algorithm, err)
		}
	}
	if _, err := server.New(server.Config{Dir: t.TempDir(), DigestAlgorithm: "RipeMD160"}); err == nil {
		t.Error("an unknown hash is accepted")
	}
}

// The results are those of ZooKeeper 3.9.5, except that what everybody may do on the root znode
// makes nobody an administrator.
func TestAuthorize(t *testing.T) {
	s := start(t, server.Config{SuperDigest: "super:D/InIHSb7yEEbrWz8b9l71RjZJU="}) // of super:test
	authorize := func(what string, want map[string]error) {
		t.Helper()
		for who, want := range want {
			scheme, credentials := who, ""
			for i := range who {
				if who[i] == ' ' {
					scheme, credentials = who[:i], who[i+1:]
					break
				}
			}
			if err := s.Identities().Authorize(scheme, credentials, "127.0.0.1"); !errors.Is(err, want) {
				t.Errorf("%s, %q: %v, want %v", what, who, err, want)
			}
		}
	}
	never := map[string]error{
		"": identity.ErrNotAuthenticated, "digest": identity.ErrNotAuthenticated, "DIGEST a:b": identity.ErrNotAuthenticated,
		"world anyone": identity.ErrNotAuthenticated, "super x": identity.ErrNotAuthenticated, "x509": identity.ErrNotAuthenticated,
	}
	authorize("always", never)
	authorize("open", map[string]error{
		"digest a:b": identity.ErrNotAuthorized, "digest :": identity.ErrNotAuthorized, "digest nocolon": identity.ErrNotAuthorized,
		"ip": identity.ErrNotAuthorized, "digest super:test": nil,
	})
	c := dialIn(t, s, 10*time.Second)
	acl := append(zk.DigestACL(zk.PermAll, "root", "pw"), zk.WorldACL(zk.PermRead)...)
	if _, err := c.SetACL("/", acl, -1); err != nil {
		t.Fatal(err)
	}
	authorize("closed", never)
	authorize("closed", map[string]error{
		"digest root:pw": nil, "digest super:test": nil, "digest root:no": identity.ErrNotAuthorized, "digest super:no": identity.ErrNotAuthorized,
		"digest :": identity.ErrNotAuthorized, "ip": identity.ErrNotAuthorized,
	})
	for credentials, want := range map[string]error{"super:test": nil, "root:pw": identity.ErrNotAuthorized, "": identity.ErrNotAuthenticated} {
		if err := s.Identities().AuthorizeSuper("digest", credentials, "127.0.0.1"); !errors.Is(err, want) {
			t.Errorf("as the superuser, %q: %v, want %v", credentials, err, want)
		}
	}
}

// Config.SkipACL opens the tree to every client, and makes nobody an administrator.
func TestAuthorize_SkipACL(t *testing.T) {
	s := start(t, server.Config{SkipACL: true})
	if err := s.Identities().Authorize("digest", "a:b", "127.0.0.1"); !errors.Is(err, identity.ErrNotAuthorized) {
		t.Errorf("%v", err)
	}
}

// A member that has just lost the quorum, or is read-only without one, ends a backup, and makes one
// when the quorum is back.
func TestBackup_WithoutAQuorum(t *testing.T) {
	withReadOnly(t, func(t *testing.T, e *ensemble) {
		for _, id := range []int{e.leader(), e.followers()[0]} {
			backups := e.m(id).s.Backups()
			e.m(id).isolate(true)
			for _, when := range []string{"at once", "later"} {
				if b, err := backups.Make(t.Context()); !errors.Is(err, server.ErrNoLeader) {
					t.Errorf("member %d without a quorum, %s: %v, %v", id, when, b, err)
				}
			}
			e.awaits("read-only", func() bool { return e.mode(id) == "read-only" })
			b, err := backups.Make(t.Context())
			if !errors.Is(err, server.ErrNoLeader) || !strings.Contains(err.Error(), "no leader, which needs a majority of the voters [1 2 3]") {
				t.Errorf("member %d, which is read-only: %v, %v", id, b, err)
			}
			e.m(id).isolate(false)
			e.awaits("serving", func() bool { return e.m(id).s.Status().Serving })
			if b, err = backups.Make(t.Context()); err == nil {
				err = b.Close()
			}
			if err != nil {
				t.Errorf("member %d with a quorum again: %v", id, err)
			}
		}
	})
}
