package consensus

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/vfs"
)

// inPlaces returns a configuration with a directory for the data and one for the log.
func inPlaces(mem *vfstest.Mem) Config {
	return Config{Dir: "/data", LogDir: "/log", FS: mem, DirFS: mem, CheckpointRequests: 1 << 30}
}

// TestPlace_Moved checks that a node ends soon after its files were removed or replaced, whether it
// writes or not, and names one of them.
func TestPlace_Moved(t *testing.T) {
	segment := filepath.Join("/log/wal", "0000000000000001.wal")
	for name, tc := range map[string]struct {
		do   func(*vfstest.Mem) error
		path string
		want error
	}{
		"data removed":       {func(m *vfstest.Mem) error { m.RemoveAll("/data"); return nil }, "/data/LOCK", fs.ErrNotExist},
		"log removed":        {func(m *vfstest.Mem) error { m.RemoveAll("/log"); return nil }, "/log/wal/LOCK", fs.ErrNotExist},
		"data replaced":      {func(m *vfstest.Mem) error { m.Replace("/data"); return nil }, "/data/LOCK", vfs.ErrReplaced},
		"log replaced":       {func(m *vfstest.Mem) error { m.Replace("/log/wal"); return nil }, "/log/wal/LOCK", vfs.ErrReplaced},
		"checkpoint removed": {func(m *vfstest.Mem) error { return m.Remove("/data/checkpoint.db") }, "/data/checkpoint.db", fs.ErrNotExist},
		"segment removed":    {func(m *vfstest.Mem) error { return m.Remove(segment) }, segment, fs.ErrNotExist},
	} {
		for _, writes := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, writes %v", name, writes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					mem := vfstest.NewMem()
					n := open(t, inPlaces(mem))
					n.put(t, "a")
					time.Sleep(3 * placeInterval)
					n.put(t, "b") // it goes on while nothing happens
					if err := tc.do(mem); err != nil {
						t.Fatal(err)
					}
					for end := time.Now().Add(placeInterval); time.Now().Before(end); time.Sleep(time.Second / 10) {
						if writes {
							n.Propose([]byte("c"), nil)
						}
					}
					synctest.Wait()
					select {
					case <-n.loopEnded:
					default:
						t.Errorf("the node goes on %v later", placeInterval)
					}
					if err := n.stop(); !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.path) {
						t.Errorf("the node ended with %v, want %v of %s", err, tc.want, tc.path)
					}
				})
			})
		}
	}
}

// TestPlace_CheckpointIntoACopy checks that no checkpoint goes to a file that somebody else has put
// into the place of this node's.
func TestPlace_CheckpointIntoACopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfstest.NewMem()
		cfg := inPlaces(mem)
		cfg.CheckpointRequests = 3
		n := open(t, cfg)
		n.put(t, "a")
		mem.Replace("/data")
		before, err := vfs.ReadFile(mem, cfg.checkpointPath())
		if err != nil {
			t.Fatal(err)
		}
		for range 5 * cfg.CheckpointRequests {
			n.Propose([]byte("b"), nil)
		}
		synctest.Wait()
		if err := n.stop(); !errors.Is(err, vfs.ErrReplaced) {
			t.Errorf("the node ended with %v", err)
		}
		if after, err := vfs.ReadFile(mem, cfg.checkpointPath()); err != nil || !bytes.Equal(before, after) {
			t.Errorf("the copy was changed (%v)", err)
		}
	})
}

// TestPlace_LockRemoved: without its lock file, another process can use the directory.
func TestPlace_LockRemoved(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file can't be removed")
	}
	n := open(t, Config{Dir: t.TempDir()})
	check := func() error {
		n.log.mu.Lock() // checkPlace leaves the check to the loop if that writes
		defer n.log.mu.Unlock()
		return n.log.writer.place.check()
	}
	if err := check(); err != nil {
		t.Fatal(err)
	}
	lock := filepath.Join(n.cfg.Dir, "LOCK")
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if err := check(); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), lock) {
		t.Errorf("without %s: %v", lock, err)
	}
	if err := n.stop(); !errors.Is(err, ErrClosed) && !errors.Is(err, fs.ErrNotExist) { // it may notice by itself
		t.Error(err)
	}
}
