package kill

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/tcpport"
	"github.com/gozkd/gozkd/internal/testkit/rawclient"
)

// patience is the limit for everything that should take milliseconds, on a busy machine.
const patience = 3 * time.Minute

// A server is a sequence of gozkd processes on the same data directory and port.
type server struct {
	bin, dir, logPath, addr string
	options                 []string // KEY=VALUE, for -o

	cmd     *exec.Cmd
	ended   chan struct{} // closed when cmd has ended
	endErr  error         // of cmd, once ended is closed
	started time.Time
}

// build builds the program under test and returns its path.
func build(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "gozkd.exe")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "github.com/gozkd/gozkd/cmd/gozkd").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// newServer prepares a server with an empty data directory. At the end of the test a running
// process is killed, and the log is shown if the test has failed.
func newServer(t *testing.T, bin string, options ...string) *server {
	t.Helper()
	dir := t.ArtifactDir()
	s := &server{bin: bin, dir: filepath.Join(dir, "data"), logPath: filepath.Join(dir, "log"), addr: reserveAddr(t), options: options}
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("the end of the server's log:\n%s", s.logTail())
		}
	})
	return s
}

// reserveAddr reserves a port until the test ends. The port is outside the range of outgoing
// connections. Where the system cannot reserve it, such a connection could otherwise take the port
// while the server is down, even the clients' own, which would then be connected to themselves.
func reserveAddr(t *testing.T) string {
	t.Helper()
	for range 1000 {
		p, err := tcpport.Reserve(fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(20000)))
		if err != nil {
			continue
		}
		t.Cleanup(p.Release)
		p.Yield()
		return p.Address()
	}
	t.Fatal("no free port between 10000 and 30000")
	return ""
}

// start starts a process and does not wait until it serves.
func (s *server) start() error {
	_, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		return err
	}
	args := []string{"--data-dir", s.dir, "--client-port", port}
	for _, o := range s.options {
		args = append(args, "-o", o)
	}
	log, err := os.OpenFile(s.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	cmd := exec.Command(s.bin, args...)
	cmd.Stderr = log
	s.started = time.Now()
	err = cmd.Start()
	if err := errors.Join(err, log.Close()); err != nil {
		return err
	}
	ended := make(chan struct{})
	s.cmd, s.ended = cmd, ended
	// Ends with the process; kill and stop wait for it.
	go func() {
		defer close(ended)
		s.endErr = cmd.Wait()
	}()
	return nil
}

// kill ends the process with SIGKILL and waits until it is gone. Without a process it does nothing.
func (s *server) kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill() // fails if the process has ended already
	<-s.ended
	s.cmd = nil
}

// stop ends the process as an operator does and returns how it ended.
func (s *server) stop() error {
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	<-s.ended
	s.cmd = nil
	return s.endErr
}

// ready waits until the process has answered a request of a new session, and returns the connection
// with how long that took since start.
func (s *server) ready(ctx context.Context) (*client, time.Duration, error) {
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	late := time.After(patience)
	for {
		c, err := open(ctx, s.addr, newSession(10*time.Second))
		if err == nil {
			if _, err = c.get("/zookeeper"); err == nil {
				return c, time.Since(s.started), nil
			}
			_ = c.Close() // it is broken
		}
		select {
		case <-poll.C:
		case <-s.ended:
			return nil, 0, errors.Join(errors.New("the server ended"), s.endErr)
		case <-late:
			return nil, 0, fmt.Errorf("the server does not answer: %w", err)
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
}

// untilCheckpoint returns true when the process has its checkpoint open. It returns false after
// some time, and at once if the system does not show open files.
func (s *server) untilCheckpoint() bool {
	fds := filepath.Join("/proc", strconv.Itoa(s.cmd.Process.Pid), "fd")
	for until := time.Now().Add(200 * time.Millisecond); time.Now().Before(until); {
		entries, err := os.ReadDir(fds)
		if err != nil {
			return false
		}
		for _, e := range entries {
			if to, err := os.Readlink(filepath.Join(fds, e.Name())); err == nil && strings.Contains(to, "checkpoint.db") {
				return true
			}
		}
	}
	return false
}

// logTail returns the last lines that the processes wrote.
func (s *server) logTail() string {
	b, err := os.ReadFile(s.logPath)
	if errors.Is(err, fs.ErrNotExist) {
		return "(empty)"
	}
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-4000):])
}

var errRefused = errors.New("session refused: expired or unknown")

// dial is rawclient.Dial for a server that may be down.
func dial(ctx context.Context, addr string) (*rawclient.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return rawclient.Dial(ctx, addr)
}
