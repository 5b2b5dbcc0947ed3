//go:build linux

package jepsenlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// mountSmallDisk puts the data directory on a small tmpfs, which outlives the member's processes.
func (m *Member) mountSmallDisk(bytes int64) error {
	if err := syscall.Mount("tmpfs", m.dataDir(), "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		return fmt.Errorf("jepsenlite: mount a disk for member %d: %w", m.ID, err)
	}
	m.smallDisk = true
	return nil
}

func (m *Member) unmountSmallDisk() error {
	if !m.smallDisk {
		return nil
	}
	if err := syscall.Unmount(m.dataDir(), 0); err != nil {
		return fmt.Errorf("jepsenlite: unmount the disk of member %d: %w", m.ID, err)
	}
	m.smallDisk = false
	return nil
}

func (m *Member) ballast() string { return filepath.Join(m.dataDir(), "ballast") }

// FillDisk takes all remaining space of the small disk, except for a spare.
func (m *Member) FillDisk(spare int64) (err error) {
	f, err := os.Create(m.ballast())
	if err != nil {
		return fmt.Errorf("jepsenlite: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	// Ever smaller pieces, until not even a page fits.
	size := int64(0)
	for piece := int64(64 << 20); piece >= 4096; {
		switch err := syscall.Fallocate(int(f.Fd()), 0, size, piece); {
		case err == nil:
			size += piece
		case errors.Is(err, syscall.ENOSPC):
			piece /= 2
		case !errors.Is(err, syscall.EINTR):
			return fmt.Errorf("jepsenlite: fill the disk of member %d: %w", m.ID, err)
		}
	}
	if err := f.Truncate(max(0, size-spare)); err != nil {
		return fmt.Errorf("jepsenlite: %w", err)
	}
	return nil
}

// FreeDisk frees the space.
func (m *Member) FreeDisk() error {
	if err := os.Remove(m.ballast()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("jepsenlite: %w", err)
	}
	return nil
}
