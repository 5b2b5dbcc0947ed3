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
	"syscall"
)

// canFreeze says why disks cannot be made that can be frozen, or returns nil.
func canFreeze() error {
	if os.Getuid() != 0 {
		return errors.New("jepsenlite: disks that hang are file systems in files, which only root can mount")
	}
	for _, tool := range []string{"mkfs.ext4", "mount"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("jepsenlite: disks that hang need %s: %w", tool, err)
		}
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		return fmt.Errorf("jepsenlite: disks that hang need loop devices: %w", err)
	}
	return nil
}

// mountLoopDisk puts the data directory on a file system of its own, in a file, which outlives the
// member's processes.
func (m *Member) mountLoopDisk(bytes int64) error {
	image := filepath.Join(m.dir, "disk")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		return fmt.Errorf("jepsenlite: %w", err)
	}
	if err := os.Truncate(image, bytes); err != nil {
		return fmt.Errorf("jepsenlite: %w", err)
	}
	for _, command := range [][]string{{"mkfs.ext4", "-q", "-F", image}, {"mount", "-o", "loop", image, m.dataDir()}} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("jepsenlite: mount a disk for member %d: %v: %w: %s", m.ID, command, err, out)
		}
	}
	m.loopDisk = true
	return nil
}

func (m *Member) unmountLoopDisk() error {
	if !m.loopDisk {
		return nil
	}
	// This detaches the loop device too.
	if err := syscall.Unmount(m.dataDir(), 0); err != nil {
		return fmt.Errorf("jepsenlite: unmount the disk of member %d: %w", m.ID, err)
	}
	m.loopDisk = false
	return nil
}

// The requests of linux/fs.h to freeze and thaw a file system.
const (
	fiFreeze = 0xc0045877
	fiThaw   = 0xc0045878
)

// FreezeDisk makes every write to the loop disk wait until ThawDisk or Kill.
func (m *Member) FreezeDisk() error {
	if !m.loopDisk {
		return fmt.Errorf("jepsenlite: member %d has no loop disk", m.ID)
	}
	m.frozen = true
	return m.freezeIoctl(fiFreeze)
}

// ThawDisk lets writes to the loop disk go on, if it is frozen.
func (m *Member) ThawDisk() error {
	if !m.frozen {
		return nil
	}
	m.frozen = false
	if err := m.freezeIoctl(fiThaw); !errors.Is(err, syscall.EINVAL) { // EINVAL: it was not frozen
		return err
	}
	return nil
}

func (m *Member) freezeIoctl(request uintptr) error {
	dir, err := os.Open(m.dataDir())
	if err != nil {
		return fmt.Errorf("jepsenlite: %w", err)
	}
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, dir.Fd(), request, 0)
	if err := dir.Close(); err != nil {
		return fmt.Errorf("jepsenlite: %w", err)
	}
	if errno != 0 {
		return fmt.Errorf("jepsenlite: freeze or thaw the disk of member %d: %w", m.ID, errno)
	}
	return nil
}

// hangDisk freezes the disk of a member until healed: mostly the leader's.
func hangDisk(ctx context.Context, n *nemesis) (string, func(context.Context) error, error) {
	var able []*Member
	for _, m := range n.cluster.Members {
		if m.loopDisk && !m.frozen && m.Running() {
			able = append(able, m)
		}
	}
	if len(able) == 0 {
		return "nobody: no running member has a disk that can be frozen", nil, errImpossible
	}
	m := able[n.rng.IntN(len(able))]
	if l := n.leader(ctx); slices.Contains(able, l) && n.rng.IntN(3) > 0 {
		m = l
	}
	return m.String(), func(context.Context) error { return m.ThawDisk() }, m.FreezeDisk()
}
