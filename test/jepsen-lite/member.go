//go:build linux

package jepsenlite

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
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

	product  Product
	dir      string
	process  *server.Process // nil: not started yet
	paused   bool
	killed   bool // by Kill, and not started since
	alone    bool // needs no names of others
	mounted  bool // the data directory is a disk of its own
	loopDisk bool // which can be frozen
	frozen   bool // loopDisk is frozen
}

// String returns "member 1".
func (m *Member) String() string { return fmt.Sprintf("member %d", m.ID) }

func (m *Member) dataDir() string { return filepath.Join(m.dir, "data") }

// LogPath returns the file with the member's output.
func (m *Member) LogPath() string { return filepath.Join(m.dir, "log") }

// Start starts the process without waiting until it serves.
func (m *Member) Start() {
	command := append(slices.Clone(m.product.Command), filepath.Join(m.dir, "zoo.cfg"))
	cmd := exec.Command(command[0], command[1:]...)
	if !m.alone {
		cmd = withHosts(filepath.Join(m.dir, "hosts"), command)
	}
	cmd.Dir = m.dir
	m.process, m.killed = server.Start(m.String(), cmd, m.LogPath()), false
}

// Running reports whether the process exists, paused or not.
func (m *Member) Running() bool { return m.process.Running() }

// Kill ends the process as kill -9 does and waits for its end, if it runs. A process that waits for
// a frozen disk does not end, so Kill thaws the disk.
func (m *Member) Kill() {
	if m.process != nil {
		m.paused, m.killed = false, true
		m.ThawDisk()
		must.Do(m.process.Kill())
	}
}

// Pause stops the process with SIGSTOP. A process that has ended is no error.
func (m *Member) Pause() {
	m.paused = true
	must.Do(m.process.Signal(syscall.SIGSTOP))
}

// Resume continues a paused process.
func (m *Member) Resume() {
	m.paused = false
	must.Do(m.process.Signal(syscall.SIGCONT))
}

// Wipe empties the data directory of a stopped member, which keeps its id, as with a new disk.
func (m *Member) Wipe() {
	for _, e := range must.Get(os.ReadDir(m.dataDir())) {
		must.Do(os.RemoveAll(filepath.Join(m.dataDir(), e.Name())))
	}
	m.writeMyID()
}

// copyOfData is where CopyData puts the copy.
func (m *Member) copyOfData() string { return m.dataDir() + ".copy" }

// CopyData copies the data directory of a stopped member.
func (m *Member) CopyData() {
	must.Do(os.RemoveAll(m.copyOfData()))
	must.Do(os.CopyFS(m.copyOfData(), os.DirFS(m.dataDir())))
}

// RestoreData puts the copy in the place of the data directory of a stopped member.
func (m *Member) RestoreData() {
	m.Wipe()
	must.Do(os.Remove(filepath.Join(m.dataDir(), "myid")))
	must.Do(os.CopyFS(m.dataDir(), os.DirFS(m.copyOfData())))
}

func (m *Member) writeMyID() {
	must.Do(os.WriteFile(filepath.Join(m.dataDir(), "myid"), fmt.Appendln(nil, m.ID), 0o644))
}

// Mode asks the member for its mode. A paused member is not asked: it would not answer.
func (m *Member) Mode(ctx context.Context) string {
	if !m.Running() || m.paused {
		return ModeNone
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	answer, _ := server.Srvr(ctx, m.Client) // empty after an error
	return cmp.Or(answer["Mode"], ModeNone)
}
