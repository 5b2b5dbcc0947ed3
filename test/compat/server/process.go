package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// stopTimeout is how long Stop waits for a process to end by itself.
const stopTimeout = 15 * time.Second

// answerTimeout is how long a started server may take to answer. ZooKeeper takes a few seconds.
const answerTimeout = time.Minute

// Process is a running server. Its methods may be called from several goroutines.
type Process struct {
	name       string
	addr       string
	secureAddr string
	logPath    string
	ports      string // the port file; empty if there is none
	tempDir    string // removed with the process; empty if the caller owns the directory
	cmd        *exec.Cmd
	done       chan struct{} // closed once the process was waited for
}

// launch starts a server with files in a new directory, and waits for it. prepare writes the files
// and returns the command. After an error nothing is left.
func launch(prepare func(work string) *exec.Cmd, await func(p *Process)) (p *Process, err error) {
	work, err := os.MkdirTemp("", "gozkd-compat-")
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	err = must.Try(func() {
		p = Start("", prepare(work), filepath.Join(work, "server.log"))
		p.tempDir = work
		await(p)
	})
	switch {
	case err == nil:
		return p, nil
	case p != nil:
		return nil, errors.Join(err, p.Kill())
	}
	return nil, errors.Join(err, os.RemoveAll(work))
}

// startAttempts bounds the attempts to start when another process takes the port.
const startAttempts = 3

// Start starts a standalone server and returns when it answers. ctx bounds the start only: the
// process runs until Stop or Kill.
func (k *Kind) Start(ctx context.Context, opts Options) (*Process, error) {
	for attempt := 1; ; attempt++ {
		var addr, secureAddr string
		p, err := launch(func(work string) *exec.Cmd {
			o := opts.in(work)
			if o.Port == 0 {
				o.Port = must.Get(FreePorts(1))[0] // ZooKeeper takes clientPort=0 for "none"
			}
			o.Keys["dataDir"] = o.DataDir
			o.Keys["clientPort"], o.Keys["clientPortAddress"] = strconv.Itoa(o.Port), "127.0.0.1"
			addr, secureAddr = net.JoinHostPort("127.0.0.1", strconv.Itoa(o.Port)), o.secure()
			return wrapped(o.Wrapper, k.configured(ctx, work, o))
		}, func(p *Process) {
			p.addr, p.secureAddr = addr, secureAddr
			p.awaitAnswer(ctx, k.product())
		})
		// A process that ends may have found its port taken; releases of ZooKeeper without a logger
		// do not say so.
		if err == nil || opts.Port != 0 || attempt == startAttempts || !strings.Contains(err.Error(), endedEarly) {
			return p, err
		}
	}
}

// Start runs cmd, a program that is not a ZooKeeper server, with its output appended to logPath.
// Name returns name; there is no address.
func Start(name string, cmd *exec.Cmd, logPath string) *Process {
	log := must.Get(os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644))
	cmd.Stdout, cmd.Stderr = log, log
	must.Do(errors.Join(cmd.Start(), log.Close()))
	p := &Process{name: name, logPath: logPath, cmd: cmd, done: make(chan struct{})}
	// Ends with the process; awaited by Stop and Kill.
	go func() {
		// The status is ignored: a server that ends early does not answer, which is noticed.
		_ = cmd.Wait()
		close(p.done)
	}()
	return p
}

// Name returns the product and version, such as "ZooKeeper 3.9.5".
func (p *Process) Name() string { return p.name }

// Addr returns the host:port of the client port; for several servers in a process, the connect
// string.
func (p *Process) Addr() string { return p.addr }

// SecureAddr returns the host:port of the port for clients with TLS, or "".
func (p *Process) SecureAddr() string { return p.secureAddr }

// PortFile returns the path of gozkd's port file, or "" if there is none.
func (p *Process) PortFile() string { return p.ports }

// Pid returns the operating system's process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Log returns the server's output so far.
func (p *Process) Log() string {
	b, err := os.ReadFile(p.logPath)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// CPU returns the processor time of a process that has ended.
func (p *Process) CPU() time.Duration {
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}

// Memory returns a field of /proc/PID/status in bytes, such as VmRSS; 0 where the system does not
// tell it, and of a process that has ended.
func (p *Process) Memory(field string) int64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid())) // nothing where the system has no such file
	kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(valuesIn(string(status), ":\t")[field]), " kB"), 10, 64)
	return kib << 10
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits until the process has ended, and returns an error with its output if it failed.
func (p *Process) Wait() error {
	<-p.done
	if !p.cmd.ProcessState.Success() {
		return fmt.Errorf("server: %s: %v\n%s", p.name, p.cmd.ProcessState, p.Log())
	}
	return nil
}

// Running reports whether the process exists, stopped by a signal or not. nil does not.
func (p *Process) Running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Signal sends a signal. A process that has ended is no error.
func (p *Process) Signal(s os.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("server: send %v to %s: %w", s, p.name, err)
	}
	return nil
}

// Stop asks the process to end, waits for its end, and removes its temporary directory. After 15
// seconds Stop kills the process and returns an error.
func (p *Process) Stop() error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return errors.Join(err, p.Kill())
	}
	select {
	case <-p.done:
		return p.removeTemp()
	case <-time.After(stopTimeout):
		return errors.Join(fmt.Errorf("server: %s did not stop within %s", p.name, stopTimeout), p.Kill())
	}
}

// Kill ends the process at once, as kill -9 does, waits until it is gone, and removes its temporary
// directory.
func (p *Process) Kill() error {
	if err := p.Signal(os.Kill); err != nil {
		return err
	}
	<-p.done
	return p.removeTemp()
}

func (p *Process) removeTemp() error {
	if p.tempDir == "" {
		return nil
	}
	return os.RemoveAll(p.tempDir)
}

// endedEarly is part of the error for a process that is gone.
const endedEarly = "ended before it answered"

// await polls ready until it returns nil.
func (p *Process) await(ctx context.Context, what string, ready func() error) {
	err := must.Try(func() {
		must.Await(ctx, answerTimeout, what, func() error {
			err := ready()
			if err != nil && !p.Running() {
				must.Do(errors.New(endedEarly))
			}
			return err
		})
	})
	if err != nil {
		must.Failf("server: %s: %w\n%s", p.name, err, p.Log())
	}
}

// awaitAnswer polls srvr until the server answers, and takes the name from the first line.
func (p *Process) awaitAnswer(ctx context.Context, product string) {
	p.name = product
	first, _, _ := strings.Cut(p.addr, ",")
	p.await(ctx, "it answers at "+p.addr, func() error {
		answer, err := Srvr(ctx, first)
		switch {
		case err != nil:
			return err
		case answer["Mode"] == "":
			return errors.New("it does not serve")
		case p.secureAddr != "": // opened after the other port
			conn, err := net.Dial("tcp", p.secureAddr)
			if err != nil {
				return err
			}
			_ = conn.Close() // nothing was sent
		}
		p.name += " " + versionOf(answer)
		return nil
	})
}

// versionOf extracts the version from "Zookeeper version: 3.9.5-74e3c6e..., built on ...". gozkd
// answers with the ZooKeeper release whose clients it serves, followed by its own version, the
// commit, and Go's version: "3.9.5-gozkd-0.1.0-f70422a5f4b5-go1.26.8".
func versionOf(srvr map[string]string) string {
	line, _, _ := strings.Cut(srvr["Zookeeper version"], ",")
	if _, v, ok := strings.Cut(line, "-gozkd-"); ok {
		line = v
	}
	v, _, _ := strings.Cut(line, "-")
	return v
}

// Srvr returns the values of srvr by their names. A server that does not serve has no Mode.
func Srvr(ctx context.Context, addr string) (map[string]string, error) {
	answer, err := FourLetterWord(ctx, addr, "srvr")
	return valuesIn(answer, ": "), err
}

// Monitored returns the values of mntr by their names.
func Monitored(ctx context.Context, addr string) (map[string]string, error) {
	answer, err := FourLetterWord(ctx, addr, "mntr")
	return valuesIn(answer, "\t"), err
}

// valuesIn returns the values of the lines by the names before them.
func valuesIn(answer, separator string) map[string]string {
	values := make(map[string]string)
	for line := range strings.Lines(answer) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), separator)
		values[name] = value
	}
	return values
}

// wordTimeout bounds an exchange of a four-letter word.
const wordTimeout = 5 * time.Second

// FourLetterWord sends a four-letter word to a client port and returns the whole answer.
func FourLetterWord(ctx context.Context, addr, word string) (answer string, err error) {
	ctx, cancel := context.WithTimeout(ctx, wordTimeout)
	defer cancel()
	err = must.Try(func() {
		conn := must.Get(new(net.Dialer).DialContext(ctx, "tcp", addr))
		defer func() { _ = conn.Close() }() // the answer is complete, or the error reported
		deadline, _ := ctx.Deadline()
		must.Do(conn.SetDeadline(deadline))
		must.Get(io.WriteString(conn, word))
		answer = string(must.Get(io.ReadAll(conn)))
	})
	if err != nil {
		return "", fmt.Errorf("server: %s: %w", word, err)
	}
	return answer, nil
}
