package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/internal/testkit/logbuf"
	"github.com/gozkd/gozkd/internal/vfs"
)

// TestRoomWait_RestsBetweenStarts: a server that stops because something on its disk is used up
// starts again after a second even if there are bytes enough: what was used up may be inodes, or
// another disk. SIGHUP means: now.
func TestRoomWait_RestsBetweenStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := roomWait{
			inv: &config.Invocation{}, log: hclog.NewNullLogger(), space: enough,
			again: func() (*config.Invocation, config.Config, error) { return &config.Invocation{}, config.Config{}, nil },
		}
		begun := time.Now()
		if !w.run(t.Context()) || time.Since(begun) < time.Second {
			t.Errorf("the server starts again after %v", time.Since(begun))
		}
		hangup := make(chan os.Signal, 1)
		hangup <- syscall.SIGHUP
		w.hangup, w.reopen, begun = hangup, func() error { return nil }, time.Now()
		if !w.run(t.Context()) || time.Since(begun) != 0 {
			t.Errorf("after SIGHUP the server starts again after %v", time.Since(begun))
		}
	})
}

// TestRoomWait_ReadsTheConfigurationAgain: a server whose disk was full starts again with the
// configuration as it is then. Meanwhile it may be unreadable, or gone.
func TestRoomWait_ReadsTheConfigurationAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := map[string]vfs.Space{
			"full": {Size: 4000, Free: 999}, "full too": {Size: 4 * leastRoom, Free: leastRoom - 1}, "other": {Size: 4000, Free: 1000},
		}
		first := &config.Invocation{File: "zoo.cfg"}
		var said logbuf.Buffer
		type reading struct {
			inv *config.Invocation
			c   config.Config
			err error
		}
		var now atomic.Pointer[reading]
		started := config.Config{}
		started.Server.Dir, started.Server.LogDir = "other", "full"
		w := roomWait{
			inv: first, c: started, log: hclog.New(&hclog.LoggerOptions{Output: &said}),
			again: func() (*config.Invocation, config.Config, error) {
				r := now.Load()
				return r.inv, r.c, r.err
			},
			space: func(dir string) (vfs.Space, bool) { space, known := room[dir]; return space, known },
		}
		now.Store(&reading{inv: &config.Invocation{}}) // the file is gone
		ended := make(chan bool, 1)
		late, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		go func() { ended <- w.run(late) }() // ends when there is room, or late
		waits := func(what string) {
			t.Helper()
			time.Sleep(10 * time.Minute)
			select {
			case <-ended:
				t.Fatalf("%s: it waits no longer", what)
			default:
			}
		}
		waits("the file is gone")
		now.Store(&reading{inv: first, err: errors.New("misspelled")})
		waits("the file cannot be read")
		moved := config.Config{LogLevel: "debug"}
		moved.Server.Dir = "full too"
		now.Store(&reading{inv: first, c: moved})
		waits("the other disk is full too")
		moved.Server.Dir = "other"
		now.Store(&reading{inv: first, c: moved})
		if !<-ended || w.c.LogLevel != "debug" || w.c.Server.Dir != "other" {
			t.Errorf("it starts again with %+v", w.c.Server)
		}
		if said.Count("zoo.cfg is gone") == 0 || said.Count("misspelled") == 0 || said.Count("disk of full has") == 0 || said.Count("disk of full too has") == 0 {
			t.Errorf("the log says:\n%s", said.String())
		}
		delete(room, "other")
		if w.run(t.Context()) {
			t.Error("it starts although nobody knows whether there is room")
		}
		stop, cancel := context.WithCancel(t.Context())
		cancel()
		if w.run(stop) {
			t.Error("it starts although it is stopped")
		}
	})
}

// TestRoomWait_Hangup: while a server waits for room, and after it has stopped, SIGHUP does not end
// the process. While it waits, the server looks for room at once, and opens the audit log again.
// The manager is told that the server lives and waits, and not that it stops, because it would kill
// the process soon after.
func TestRoomWait_Hangup(t *testing.T) {
	l := manage(t)
	t.Setenv("WATCHDOG_USEC", "20000")
	var said logbuf.Buffer
	log, manager := hclog.New(&hclog.LoggerOptions{Output: &said}), systemd{hclog.NewNullLogger()}
	r := &reloader{manager: manager, log: log}
	reopened, room := make(chan bool, 1), atomic.Int64{}
	w := roomWait{
		inv: &config.Invocation{}, log: log, space: func(string) (vfs.Space, bool) { return vfs.Space{Size: 1 << 40, Free: room.Load()}, true },
		again:  func() (*config.Invocation, config.Config, error) { return &config.Invocation{}, config.Config{}, nil },
		reopen: func() error { reopened <- true; return nil },
	}
	ended, calls := make(chan error, 1), 0
	// Ends when there is room; awaited below.
	go func() {
		ended <- w.serve(t.Context(), manager, func(<-chan os.Signal) error {
			if calls++; calls == 2 {
				return nil
			}
			r.fails(syscall.ENOSPC)
			return syscall.ENOSPC
		})
	}()
	for _, want := range []string{"STATUS=stopping, because a disk is full", "STATUS=waiting for room", "WATCHDOG=1", "WATCHDOG=1"} {
		buf := make([]byte, 4096)
		n, err := l.Read(buf)
		if got := string(buf[:n]); err != nil || got != want {
			t.Fatalf("told %q, want %q: %v", got, want, err)
		}
	}
	_ = l.Close() // otherwise notifications that nobody reads would block the watchdog, and so the end of the wait
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	<-reopened
	room.Store(leastRoom)
	if err := <-ended; err != nil || calls != 2 {
		t.Errorf("%d starts: %v", calls, err)
	}
	if err := self.Signal(syscall.SIGHUP); err != nil { // of a log rotation while the process ends
		t.Fatal(err)
	}
	<-w.hangup
	if said.Count("a disk is full, so this server has stopped") != 1 {
		t.Errorf("the log says:\n%s", said.String())
	}
}

// TestRoomWait_AnswersProbes: while a server waits for room, its admin port answers: the process is
// alive and must not be restarted, the server is not ready, and the reason and the remedy are there
// for whoever asks. The port is free when the server starts again.
func TestRoomWait_AnswersProbes(t *testing.T) {
	port, err := strconv.Atoi(reservePorts(t, 1)[0])
	if err != nil {
		t.Fatal(err)
	}
	c := config.Config{AdminEnabled: true, AdminAddress: "127.0.0.1", AdminPort: port}
	c.Server.Dir = "full"
	room := atomic.Int64{}
	w := roomWait{
		inv: &config.Invocation{}, c: c, log: hclog.NewNullLogger(), reopen: func() error { return nil },
		space: func(string) (vfs.Space, bool) { return vfs.Space{Size: 1 << 40, Free: room.Load()}, true },
		again: func() (*config.Invocation, config.Config, error) { return &config.Invocation{}, c, nil },
	}
	address := fmt.Sprint("127.0.0.1:", port)
	ask := func(path string, status int, want string) {
		t.Helper()
		await(t, path, func() error {
			r, err := http.Get("http://" + address + path) //nolint:noctx // the port is this process's
			if err != nil {
				return err
			}
			defer r.Body.Close()
			text, err := io.ReadAll(r.Body)
			if r.StatusCode != status || !strings.Contains(string(text), want) {
				return fmt.Errorf("status %d, %q: %w", r.StatusCode, text, err)
			}
			return nil
		})
	}
	ended, calls := make(chan error, 1), 0
	// Ends when there is room; awaited below.
	go func() {
		ended <- w.serve(t.Context(), systemd{hclog.NewNullLogger()}, func(<-chan os.Signal) error {
			if calls++; calls == 1 {
				return fmt.Errorf("checkpoint.db: %w", syscall.ENOSPC)
			}
			l, err := net.Listen("tcp", address)
			if err != nil {
				return err
			}
			return l.Close()
		})
	}()
	ask("/livez", http.StatusOK, "[+]running ok")
	ask("/readyz", http.StatusServiceUnavailable, "the disk of full has less than 128 MiB free; make room there")
	ask("/commands/ruok", http.StatusServiceUnavailable, "make room there; then this server starts again by itself")
	room.Store(leastRoom)
	if err := <-ended; err != nil || calls != 2 {
		t.Errorf("%d starts: %v", calls, err)
	}
}

// TestRoomWait_KeepsItsData: a server whose disk was full starts again only where the files are
// that it stopped with. So it does not begin with an empty tree, or with a part of its data, while
// the operator moves them to another disk.
func TestRoomWait_KeepsItsData(t *testing.T) {
	top := t.TempDir()
	at := func(names ...string) string { return filepath.Join(append([]string{top}, names...)...) }
	write := func(path, text string) {
		t.Helper()
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err := errors.Join(err, os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	write(at("old", "checkpoint.db"), "checkpoint")
	write(at("old", "wal", "1"), "entries")
	synctest.Test(t, func(t *testing.T) {
		var said logbuf.Buffer
		var now atomic.Pointer[config.Config]
		set := func(dir, logDir string) {
			c := config.Config{}
			c.Server.Dir, c.Server.LogDir = dir, logDir
			now.Store(&c)
		}
		set(at("old"), at("old"))
		w := roomWait{
			inv: &config.Invocation{}, c: *now.Load(), log: hclog.New(&hclog.LoggerOptions{Output: &said}),
			again: func() (*config.Invocation, config.Config, error) { return &config.Invocation{}, *now.Load(), nil },
			space: enough,
		}
		set(at("new"), at("new"))
		late, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		ended := make(chan bool, 1)
		go func() { ended <- w.run(late) }() // ends when the data are there, or late
		// The operator works between two looks. Otherwise one could see half of a step.
		time.Sleep(time.Second / 2)
		for _, step := range []struct {
			what string
			do   func()
		}{
			{"no directory", func() {}},
			{"an empty directory", func() { _ = os.Mkdir(at("new"), 0o755) }},
			{"no log", func() { write(at("new", "checkpoint.db"), "checkpoint") }},
			{"a part of the log", func() { write(at("new", "wal", "1"), "ent") }},
			{"the log elsewhere", func() { write(at("new", "wal", "1"), "entries"); set(at("new"), at("log")) }},
			{"a part of the checkpoint", func() {
				write(at("log", "wal", "1"), "entries")
				write(at("new", "checkpoint.db"), "check")
			}},
			{"the old directory, emptied", func() { _ = os.Rename(at("old"), at("away")); set(at("old"), at("old")) }},
		} {
			step.do()
			time.Sleep(5 * time.Minute)
			select {
			case <-ended:
				t.Fatalf("%s: it waits no longer", step.what)
			default:
			}
		}
		write(at("new", "checkpoint.db"), "checkpoint")
		set(at("new"), at("log"))
		if !<-ended || w.c.Server.Dir != at("new") {
			t.Errorf("it starts again in %s", w.c.Server.Dir)
		}
		for _, want := range []string{
			at("new") + " and " + at("log") + " lacks files", "move the files of " + at("old") + " there",
		} {
			if said.Count(want) == 0 {
				t.Errorf("the log does not say %q:\n%s", want, said.String())
			}
		}
	})
}

// enough is the room on a disk that is just large enough.
func enough(string) (room vfs.Space, known bool) {
	return vfs.Space{Size: 1 << 40, Free: leastRoom}, true
}

// TestSpaceAt_NoDirectoryYet: the server makes its directory at the start, so the disk is that of
// the nearest directory that exists.
func TestSpaceAt_NoDirectoryYet(t *testing.T) {
	dir := t.TempDir()
	_, want := vfs.SpaceOf(dir)
	if _, known := spaceAt(filepath.Join(dir, "not", "yet")); known != want {
		t.Errorf("the room is known: %v, want %v", known, want)
	}
}
