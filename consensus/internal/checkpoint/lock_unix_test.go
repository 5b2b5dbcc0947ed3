//go:build unix

package checkpoint

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/gozkd/gozkd/internal/vfs"
)

// shortOnce has no descriptor for the first OpenRW.
type shortOnce struct {
	vfs.FS
	opened int
}

func (s *shortOnce) OpenRW(name string) (vfs.File, error) {
	if s.opened++; s.opened == 1 {
		return nil, syscall.EMFILE
	}
	return s.FS.OpenRW(name)
}

// A file that took a descriptor of the reserve is locked like any other.
func TestLockFile_OfTheReserve(t *testing.T) {
	name := filepath.Join(t.TempDir(), "checkpoint.db")
	if err := vfs.WriteFile(vfs.OS{}, name, []byte("x")); err != nil {
		t.Fatal(err)
	}
	reserve := vfs.NewReserve(1, func(error) {})
	defer reserve.Close()
	ours, err := reserve.FS(&shortOnce{FS: vfs.OS{}}).OpenRW(name)
	if err != nil {
		t.Fatal(err)
	}
	others, err := vfs.OS{}.OpenRW(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := lockFile(others, true); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		if err := lockFile(ours, false); !errors.Is(err, errInUse) {
			t.Errorf("%v, want %v", err, errInUse)
		}
	})
	if err := errors.Join(ours.Close(), others.Close()); err != nil {
		t.Error(err)
	}
}
