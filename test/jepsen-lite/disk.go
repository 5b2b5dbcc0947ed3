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

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// mountSmallDisk puts the data directory on a small tmpfs, which outlives the member's processes.
func (m *Member) mountSmallDisk(bytes int64) {
	if err := syscall.Mount("tmpfs", m.dataDir(), "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		must.Failf("mount a disk for %v: %w", m, err)
	}
	m.mounted = true
}

// mountLoopDisk puts the data directory on a file system in a file, which outlives processes.
func (m *Member) mountLoopDisk(bytes int64) {
	image := filepath.Join(m.dir, "disk")
	must.Do(os.WriteFile(image, nil, 0o600))
	must.Do(os.Truncate(image, bytes))
	for _, command := range [][]string{{"mkfs.ext4", "-q", "-F", image}, {"mount", "-o", "loop", image, m.dataDir()}} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			must.Failf("mount a disk for %v: %v: %w: %s", m, command, err, out)
		}
	}
	m.mounted, m.loopDisk = true, true
}

// unmount takes away what was mounted, and detaches a loop device.
func (m *Member) unmount() {
	if !m.mounted {
		return
	}
	if err := syscall.Unmount(m.dataDir(), 0); err != nil {
		must.Failf("unmount the disk of %v: %w", m, err)
	}
	m.mounted, m.loopDisk = false, false
}

func (m *Member) ballast() string { return filepath.Join(m.dataDir(), "ballast") }

// FillDisk takes all remaining space of the small disk, except for a spare.
func (m *Member) FillDisk(spare int64) {
	f := must.Get(os.Create(m.ballast()))
	defer must.Finally(f.Close)
	// Ever smaller pieces, until not even a page fits.
	size := int64(0)
	for piece := int64(64 << 20); piece >= 4096; {
		switch err := syscall.Fallocate(int(f.Fd()), 0, size, piece); {
		case err == nil:
			size += piece
		case errors.Is(err, syscall.ENOSPC):
			piece /= 2
		case !errors.Is(err, syscall.EINTR):
			must.Failf("fill the disk of %v: %w", m, err)
		}
	}
	must.Do(f.Truncate(max(0, size-spare)))
}

// FreeDisk frees the space.
func (m *Member) FreeDisk() {
	if err := os.Remove(m.ballast()); !errors.Is(err, os.ErrNotExist) {
		must.Do(err)
	}
}

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

// The requests of linux/fs.h to freeze and thaw a file system.
const (
	fiFreeze = 0xc0045877
	fiThaw   = 0xc0045878
)

// FreezeDisk makes every write to the loop disk wait until ThawDisk or Kill.
func (m *Member) FreezeDisk() {
	if !m.loopDisk {
		must.Failf("%v has no loop disk", m)
	}
	m.frozen = true
	must.Do(m.freezeIoctl(fiFreeze))
}

// ThawDisk lets writes to the loop disk go on, if it is frozen.
func (m *Member) ThawDisk() {
	if !m.frozen {
		return
	}
	m.frozen = false
	if err := m.freezeIoctl(fiThaw); !errors.Is(err, syscall.EINVAL) { // EINVAL: it was not frozen
		must.Do(err)
	}
}

func (m *Member) freezeIoctl(request uintptr) error {
	dir := must.Get(os.Open(m.dataDir()))
	defer must.Finally(dir.Close)
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, dir.Fd(), request, 0); errno != 0 {
		return fmt.Errorf("freeze or thaw the disk of %v: %w", m, errno)
	}
	return nil
}

// hangDisk freezes the disk of a member until healed: mostly the leader's.
func hangDisk(ctx context.Context, n *nemesis) (string, healing) {
	var able []*Member
	for _, m := range n.cluster.Members {
		if m.loopDisk && !m.frozen && m.Running() {
			able = append(able, m)
		}
	}
	if len(able) == 0 {
		return "nobody: no running member has a disk that can be frozen", nil
	}
	m := able[n.rng.IntN(len(able))]
	if l := n.leader(ctx); slices.Contains(able, l) && n.rng.IntN(3) > 0 {
		m = l
	}
	m.FreezeDisk()
	return m.String(), func(context.Context) { m.ThawDisk() }
}
