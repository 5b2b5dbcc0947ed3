// Package program lets the tests of a main package run the program in a process of its own: the
// test binary itself, which RunMain makes the program.
package program

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/logbuf"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

// variable makes the test binary run the program.
const variable = "GOZKD_TEST_AS_PROGRAM"

// RunMain runs main if Command has made this process the program. TestMain calls it first.
func RunMain(main func()) {
	if os.Getenv(variable) != "" {
		main()
	}
}

// Command returns a command that runs the program with these arguments.
func Command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	// The race detector would let each process sleep for a second before it ends.
	cmd.Env = append(os.Environ(), variable+"=1", "GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0")
	return cmd
}

// Process is a running program.
type Process struct {
	PortFile []byte
	Stderr   logbuf.Buffer

	t    *testing.T
	file string // the port file
	cmd  *exec.Cmd
	done chan struct{}
}

// Launch starts the program with a port file, waits until the file is there, and decodes it into
// ports. The process is killed when the test ends.
func Launch(t *testing.T, ports any, args ...string) *Process {
	t.Helper()
	p := &Process{}
	p.launch(t, ports, &p.Stderr, args)
	return p
}

// LaunchUnread is Launch for a program whose standard error nobody reads any more.
func LaunchUnread(t *testing.T, ports any, args ...string) *Process {
	t.Helper()
	r, w, err := os.Pipe()
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	p := &Process{}
	p.launch(t, ports, w, args)
	return p
}

func (p *Process) launch(t *testing.T, ports any, stderr io.Writer, args []string) {
	t.Helper()
	dir := t.TempDir()
	p.t, p.file, p.done = t, filepath.Join(dir, "ports.json"), make(chan struct{})
	p.cmd = Command(append(args, "--port-file", p.file)...)
	p.cmd.Dir, p.cmd.Stderr = dir, stderr
	p.cmd.Env = append([]string{"XDG_CACHE_HOME=" + dir}, p.cmd.Env...) // the last one counts
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Ends with the process, which the cleanup kills.
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // see ProcessState
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // most processes have ended by then
		<-p.done
		if t.Failed() {
			t.Logf("%s:\n%s", strings.Join(args, " "), &p.Stderr)
		}
	})
	p.PortFile = p.awaitFile()
	if err := json.Unmarshal(p.PortFile, ports); err != nil || bytes.Count(p.PortFile, []byte("\n")) != 1 {
		t.Fatalf("the port file was not whole when it appeared: %q: %v", p.PortFile, err)
	}
}

func (p *Process) awaitFile() []byte {
	p.t.Helper()
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	late := watchdog.After(p.t, 30*time.Second)
	for {
		select {
		case <-poll.C:
		case <-p.done:
			p.t.Fatal("the process ended before it served")
		case <-late:
			p.t.Fatal("the process does not serve")
		}
		content, err := os.ReadFile(p.file)
		if err == nil {
			return content
		}
		if !errors.Is(err, os.ErrNotExist) {
			p.t.Fatal(err)
		}
	}
}

// Signal sends a signal. It skips the test where there are no signals.
func (p *Process) Signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Skip("no signals here: ", err)
	}
}

// Pid returns the id of the process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Wait waits until the process has ended, and returns the exit status.
func (p *Process) Wait() int {
	<-p.done
	return p.cmd.ProcessState.ExitCode()
}

// Stop sends a signal and returns the exit status. A program that ends well removes its port file.
func (p *Process) Stop(s os.Signal) int {
	p.t.Helper()
	p.Signal(s)
	status := p.Wait()
	if _, err := os.Stat(p.file); status == 0 && err == nil {
		p.t.Error("the port file is left")
	}
	return status
}
