//go:build unix

package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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

// A file that waited for a descriptor is locked like any other.
func TestLockFile_AfterAWait(t *testing.T) {
	name := filepath.Join(t.TempDir(), "checkpoint.db")
	if err := vfs.WriteFile(vfs.OS{}, name, []byte("x")); err != nil {
		t.Fatal(err)
	}
	ours, err := vfs.Patient(&shortOnce{FS: vfs.OS{}}, func(error) {}).OpenRW(name)
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
		if err := lockFile(ours, false); !errors.Is(err, ErrInUse) {
			t.Errorf("%v, want %v", err, ErrInUse)
		}
	})
	if err := errors.Join(ours.Close(), others.Close()); err != nil {
		t.Error(err)
	}
}

// A tool reads one file to its end: bbolt neither sees the file that replaces it meanwhile, nor
// ends the process if the mapped file shrinks.
func TestSaved_FileChangesWhileBboltReads(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(path string) error
		want   error
	}{
		{"replaced", func(path string) error {
			other := delta{"other": "value"}
			err := Create(vfs.OS{}, path+".new", testMeta(9), other.Range, nil)
			return errors.Join(err, Replace(vfs.OS{}, path+".new", path))
		}, nil},
		{"shrunk", func(path string) error { return os.Truncate(path, 2*int64(os.Getpagesize())) }, syscall.EIO},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "checkpoint.db")
			d := make(delta)
			for i := range 200 {
				d[fmt.Sprintf("%03d", i)] = strings.Repeat("v", 1000)
			}
			if err := Create(vfs.OS{}, path, testMeta(1), d.Range, nil); err != nil {
				t.Fatal(err)
			}
			r, err := Open(Saved{}, path, NewestOfTwo)
			if err != nil {
				t.Fatal(err)
			}
			read, length := 0, 0
			var changed error
			// As when a state is decoded, the visitor is the body of a range loop.
			pairs := func(yield func(k, v []byte) bool) {
				err = r.Range(func(k, v []byte) error { yield(k, v); return nil })
			}
			for _, v := range pairs {
				if read++; read == 1 {
					changed = c.change(path)
				}
				length += bytes.Count(v, []byte("v"))
			}
			if changed != nil {
				t.Error(changed)
			}
			if !errors.Is(err, c.want) || errors.Is(err, ErrCorrupt) {
				t.Errorf("after %d pairs: %v, want %v", read, err, c.want)
			}
			if c.want == nil && (read != len(d) || length != 200*1000) {
				t.Errorf("%d pairs of %d, %d bytes", read, len(d), length)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Range passes on a panic of its caller.
func TestSaved_PanicOfTheVisitor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "checkpoint.db")
	if err := Create(vfs.OS{}, path, testMeta(1), delta{"a": "b"}.Range, nil); err != nil {
		t.Fatal(err)
	}
	r, err := Open(Saved{}, path, NewestOfTwo)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if got := recover(); got != "mine" {
			t.Errorf("recovered %v", got)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	_ = r.Range(func(_, _ []byte) error { panic("mine") })
}
