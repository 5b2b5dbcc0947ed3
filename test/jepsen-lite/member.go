//go:build linux

package jepsenlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gozkd/gozkd/test/compat/server"
)

// Modes of a member, as in the srvr word.
const (
	ModeLeader     = "leader"
	ModeFollower   = "follower"
	ModeObserver   = "observer"
	ModeStandalone = "standalone"
	ModeNone       = "none" // does not answer, or does not serve
)

// A Member is a sequence of processes on a data directory. Not safe for concurrent use.
type Member struct {
	ID     int
	Client string // address for clients

	product   Product
	dir       string
	process   *server.Process // nil: not started yet
	paused    bool
	alone     bool // needs no names of others
	smallDisk bool
	loopDisk  bool
	frozen    bool // loopDisk is frozen
}

// String returns "member 1".
func (m *Member) String() string { return fmt.Sprintf("member %d", m.ID) }

func (m *Member) dataDir() string { return filepath.Join(m.dir, "data") }

// LogPath returns the file with the member's output.
func (m *Member) LogPath() string { return filepath.Join(m.dir, "log") }

// Start starts the process without waiting until it serves.
func (m *Member) Start() error {
	command := append(slices.Clone(m.product.Command), filepath.Join(m.dir, "zoo.cfg"))
	cmd := exec.Command(command[0], command[1:]...)
	if !m.alone {
		cmd = withHosts(filepath.Join(m.dir, "hosts"), command)
	}
	cmd.Dir = m.dir
	var err error
	m.process, err = server.Start(m.String(), cmd, m.LogPath())
	return err
}

// Running reports whether the process exists, paused or not.
func (m *Member) Running() bool { return m.process.Running() }

// Kill ends the process as kill -9 does and waits for its end, if it runs. A process that waits for
// a frozen disk does not end, so Kill thaws the disk.
func (m *Member) Kill() error {
	if m.process == nil {
		return nil
	}
	m.paused = false
	if err := m.ThawDisk(); err != nil {
		return err
	}
	return m.process.Kill()
}

// Pause stops the process with SIGSTOP. A process that has ended is no error.
func (m *Member) Pause() error {
	m.paused = true
	return m.process.Signal(syscall.SIGSTOP)
}

// Resume continues a paused process.
func (m *Member) Resume() error {
	m.paused = false
	return m.process.Signal(syscall.SIGCONT)
}

// Wipe empties the data directory of a stopped member, which keeps its id, as with a new disk.
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

// copyOfData is where CopyData puts the copy.
func (m *Member) copyOfData() string { return m.dataDir() + ".copy" }

// CopyData copies the data directory of a stopped member.
func (m *Member) CopyData() error {
	return errors.Join(os.RemoveAll(m.copyOfData()), os.CopyFS(m.copyOfData(), os.DirFS(m.dataDir())))
}

// RestoreData puts the copy in the place of the data directory of a stopped member.
func (m *Member) RestoreData() error {
	return errors.Join(m.Wipe(), os.Remove(filepath.Join(m.dataDir(), "myid")), os.CopyFS(m.dataDir(), os.DirFS(m.copyOfData())))
}

func (m *Member) writeMyID() error {
	return os.WriteFile(filepath.Join(m.dataDir(), "myid"), []byte(strconv.Itoa(m.ID)+"\n"), 0o644)
}

// Mode asks the member for its mode. A paused member is not asked: it would not answer.
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
