//go:build linux

package jepsenlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gozkd/gozkd/test/compat/server"
)

// What a member may be, in the words of the srvr word.
const (
	ModeLeader     = "leader"
	ModeFollower   = "follower"
	ModeObserver   = "observer"
	ModeStandalone = "standalone"
	ModeNone       = "none" // does not answer, or does not serve
)

// A Member is one process after another on the same data directory. Not safe for concurrent use.
type Member struct {
	ID     int
	Client string // address for clients

	product   Product
	dir       string
	cmd       *exec.Cmd
	ended     chan struct{} // closed when cmd has ended
	paused    bool
	smallDisk bool
}

// String returns "member 1".
func (m *Member) String() string { return fmt.Sprintf("member %d", m.ID) }

func (m *Member) dataDir() string { return filepath.Join(m.dir, "data") }

// LogPath returns the file that everything the member prints is appended to.
func (m *Member) LogPath() string { return filepath.Join(m.dir, "log") }

// Start starts the process and does not wait until it serves.
func (m *Member) Start() error {
	log, err := os.OpenFile(m.LogPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("jepsenlite: %w", err)
	}
	command := append(m.product.Command[:len(m.product.Command):len(m.product.Command)], filepath.Join(m.dir, "zoo.cfg"))
	cmd := withHosts(filepath.Join(m.dir, "hosts"), command)
	cmd.Dir = m.dir
	cmd.Stdout, cmd.Stderr = log, log
	if err := errors.Join(cmd.Start(), log.Close()); err != nil {
		return fmt.Errorf("jepsenlite: start member %d: %w", m.ID, err)
	}
	m.cmd, m.ended = cmd, make(chan struct{})
	ended := m.ended
	// Ends with the process; Kill awaits it.
	go func() {
		// The status says nothing: a member that ends by itself is noticed because it does not serve.
		_ = cmd.Wait()
		close(ended)
	}()
	return nil
}

// Running reports whether the process is there, paused or not.
func (m *Member) Running() bool {
	if m.cmd == nil {
		return false
	}
	select {
	case <-m.ended:
		return false
	default:
		return true
	}
}

// Kill ends the process as kill -9 does, and awaits its end. A member that does not run stays so.
func (m *Member) Kill() error {
	if m.cmd == nil {
		return nil
	}
	m.paused = false
	if err := m.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("jepsenlite: kill member %d: %w", m.ID, err)
	}
	<-m.ended
	return nil
}

// Pause stops the process with SIGSTOP; Resume lets it go on. A process that ended meanwhile is no error.
func (m *Member) Pause() error {
	m.paused = true
	return m.signal(syscall.SIGSTOP)
}

// Resume lets a paused process go on.
func (m *Member) Resume() error {
	m.paused = false
	return m.signal(syscall.SIGCONT)
}

func (m *Member) signal(s syscall.Signal) error {
	if err := m.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("jepsenlite: %v to member %d: %w", s, m.ID, err)
	}
	return nil
}

// Wipe empties the data directory of a member that does not run. It keeps its id, as a new disk for an old server would.
func (m *Member) Wipe() error {
	entries, err := os.ReadDir(m.dataDir())
	if err != nil {
		return fmt.Errorf("jepsenlite: %w", err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(m.dataDir(), e.Name())); err != nil {
			return fmt.Errorf("jepsenlite: %w", err)
		}
	}
	return m.writeMyID()
}

func (m *Member) writeMyID() error {
	return os.WriteFile(filepath.Join(m.dataDir(), "myid"), []byte(strconv.Itoa(m.ID)+"\n"), 0o644)
}

// Mode asks the member what it is. A paused one is not asked: the answer would take until it goes on.
func (m *Member) Mode(ctx context.Context) string {
	if !m.Running() || m.paused {
		return ModeNone
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	answer, err := server.FourLetterWord(ctx, m.Client, "srvr")
	if err != nil {
		return ModeNone
	}
	return modeOf(answer)
}

// modeOf finds the line "Mode: leader".
func modeOf(srvr string) string {
	for line := range strings.Lines(srvr) {
		if mode, ok := strings.CutPrefix(line, "Mode: "); ok {
			return strings.TrimSpace(mode)
		}
	}
	return ModeNone
}
