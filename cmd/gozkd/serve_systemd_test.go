package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/server"
)

// manage plays the service manager: it returns the socket for notifications.
func manage(t *testing.T) *net.UnixConn {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no service manager of that kind there")
	}
	socket := filepath.Join(t.TempDir(), "n") // socket names must be short
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	t.Setenv("NOTIFY_SOCKET", socket)
	_ = l.SetReadDeadline(time.Now().Add(10 * time.Minute))
	return l
}

// The service manager is notified of the start, reloads, liveness and the stop.
func TestServe_Systemd(t *testing.T) {
	l := manage(t)
	next := func(want string) {
		t.Helper()
		_ = l.SetReadDeadline(time.Now().Add(10 * time.Minute))
		buf := make([]byte, 4096)
		for {
			n, err := l.Read(buf)
			if err != nil {
				t.Fatalf("waiting for %q: %v", want, err)
			}
			if got := string(buf[:n]); strings.HasPrefix(got, want) {
				return
			} else if got != "WATCHDOG=1" && !strings.HasPrefix(got, "STATUS=") {
				t.Fatalf("told %q, want %q", got, want)
			}
		}
	}
	t.Setenv("WATCHDOG_USEC", "20000")
	p := launch(t, "--memory", "--client-port", "0")
	next("READY=1\nSTATUS=serving clients at " + p.ports.Client)
	next("WATCHDOG=1")
	p.Signal(syscall.SIGHUP)
	next("RELOADING=1\nMONOTONIC_USEC=")
	next("READY=1")
	p.Signal(syscall.SIGTERM)
	next("STOPPING=1\n")
	if status := p.Wait(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// The first of several servers is ready for the service manager while it waits for the others.
// SIGHUP makes it reload its configuration and open its audit log again meanwhile.
func TestReloader_SystemdWaiting(t *testing.T) {
	l := manage(t)
	peers, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Config{
		InProcess: true, PeerListener: peers, Members: []string{"server.1=127.0.0.1:1:2", "server.2=127.0.0.2:1:2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	hangup, done := make(chan os.Signal, 1), make(chan string, 2)
	r := &reloader{
		server: s, log: hclog.NewNullLogger(), manager: systemd{hclog.NewNullLogger()},
		hangup: hangup, reopen: func() error { done <- "reopened"; return nil },
		again: func() (*config.Invocation, config.Config, error) {
			done <- "read again"
			return nil, config.Config{}, errors.New("not there")
		},
	}
	hangup <- syscall.SIGHUP
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	// Ends when ctx does; awaited below.
	go func() { ended <- r.whileStarting(ctx, 10*time.Millisecond, s.Start) }()
	for _, want := range []string{"reopened", "read again"} {
		select {
		case got := <-done:
			if got != want {
				t.Errorf("SIGHUP: %s, want %s", got, want)
			}
		case <-watchdog.After(t, time.Minute):
			t.Fatalf("SIGHUP: not %s", want)
		}
	}
	_ = l.SetReadDeadline(time.Now().Add(10 * time.Minute))
	buf := make([]byte, 4096)
	n, err := l.Read(buf)
	if got := string(buf[:n]); err != nil || got != "READY=1\nSTATUS=waiting for the other servers: no leader yet" {
		t.Errorf("told %q: %v", got, err)
	}
	stop()
	if err := <-ended; err == nil {
		t.Error("started without the others")
	}
}

// The service manager is not notified of a reload before the start or during the stop, because a
// reload ends with READY=1.
func TestReloader_Systemd(t *testing.T) {
	l := manage(t)
	s, err := server.New(server.Config{InProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	r := &reloader{
		server: s, log: hclog.NewNullLogger(), manager: systemd{hclog.NewNullLogger()},
		again: func() (*config.Invocation, config.Config, error) {
			return nil, config.Config{}, errors.New("not there")
		},
	}
	reload := func() {
		t.Helper()
		if err := r.forAdmin(); err == nil {
			t.Error("a bad file was taken")
		}
	}
	reload()
	if err := r.notReady(); err != nil {
		t.Errorf("before the stop: %v", err)
	}
	r.serves("127.0.0.1:5")
	reload()
	r.ends("STOPPING=1\nSTATUS=stopping")
	reload()
	if err := r.notReady(); err == nil {
		t.Error("ready while it stops")
	}
	r.manager.notify("end")
	_ = l.SetReadDeadline(time.Now().Add(10 * time.Minute))
	for _, want := range []string{"READY=1\nSTATUS=", "RELOADING=1\n", "READY=1", "STOPPING=1\n", "end"} {
		buf := make([]byte, 4096)
		n, err := l.Read(buf)
		if got := string(buf[:n]); err != nil || !strings.HasPrefix(got, want) {
			t.Fatalf("told %q, want %q: %v", got, want, err)
		}
	}
}

// SIGHUP makes the server reload its configuration, even if the audit log cannot be closed well.
func TestReloader_AuditLogNotClosedWell(t *testing.T) {
	read := 0
	r := &reloader{
		log: hclog.NewNullLogger(), reopen: func() error { return errors.New("no room") },
		again: func() (*config.Invocation, config.Config, error) {
			read++
			return nil, config.Config{}, errors.New("not there")
		},
	}
	if r.hungUp(); read != 1 {
		t.Errorf("the configuration was read %d times", read)
	}
}
