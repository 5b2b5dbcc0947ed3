package server

import (
	"errors"
	"syscall"
	"testing"

	"github.com/gozkd/gozkd/internal/confighook"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
)

// A server that differs from the others does not start again, also after a power loss right after
// the mark.
func TestDiverged_PowerLoss(t *testing.T) {
	disk := vfstest.NewMem()
	if err := disk.MkdirAll("/data"); err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{Dir: "/data", hooks: confighook.Hooks{DataFS: disk}})
	if err != nil {
		t.Fatal(err)
	}
	s.life.Cancel = func() {} // Start was not called
	s.leader.diverged(16)
	s.cfg.hooks.DataFS = disk.Crash(func(int) int { return 0 })
	if err := s.leader.checkDiverged(); !errors.Is(err, ErrDiverged) {
		t.Errorf("the mark did not survive: %v", err)
	}
}

// A server does not start if the disk fails to say whether there is a mark.
func TestDiverged_Unreadable(t *testing.T) {
	disk := vfstest.NewFaulty(vfstest.NewMem(), func(op vfstest.Op) error {
		if op.Kind == vfstest.OpOpen {
			return syscall.EIO
		}
		return nil
	})
	s, err := New(Config{Dir: "/", hooks: confighook.Hooks{DataFS: disk}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.leader.checkDiverged(); !errors.Is(err, syscall.EIO) {
		t.Errorf("a start with a disk that cannot be read: %v", err)
	}
}
