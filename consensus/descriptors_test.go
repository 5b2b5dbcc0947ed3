package consensus

import (
	"fmt"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/consensus/internal/checkpoint"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/vfs"
)

// For 30 s hardly any file descriptor is left. Meanwhile the log needs new segments, and a
// checkpoint is due. The node goes on, and writes the checkpoint afterwards.
func TestDescriptors_NoneLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var none atomic.Bool
		var calls atomic.Int64
		disk := vfstest.NewFaulty(vfstest.NewMem(), func(op vfstest.Op) error {
			switch op.Kind {
			case vfstest.OpCreate, vfstest.OpOpen, vfstest.OpSyncDir:
				if none.Load() && (filepath.Base(op.Path) == "checkpoint.db" || calls.Add(1)%2 == 1) {
					return syscall.EMFILE
				}
			}
			return nil
		})
		written := make(chan int, 100)
		n := open(t, Config{
			Dir: "data", FS: disk, DirFS: disk, CheckpointRequests: 20, SegmentBytes: 4096,
			OnCheckpoint: func(_ time.Duration, changes int) { written <- changes },
		})
		none.Store(true)
		for i := range 100 {
			n.put(t, fmt.Sprint(i))
		}
		time.Sleep(30 * time.Second)
		if len(written) > 0 {
			t.Error("a checkpoint was written without a descriptor")
		}
		none.Store(false)
		time.Sleep(10 * time.Second)
		if calls.Load() == 0 || len(written) == 0 {
			t.Errorf("%d calls of the log without a descriptor; no checkpoint after descriptors were there again", calls.Load())
		}
		n.put(t, "more")
		n.close(t)
	})
}

// A tool reads the checkpoint for three minutes. The node goes on, and writes its checkpoint
// afterwards.
func TestCheckpoint_WaitsForAReader(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the file is not locked")
	}
	synctest.Test(t, func(t *testing.T) {
		dir, written := t.TempDir(), make(chan int, 100)
		n := open(t, Config{
			Dir: dir, NoSync: true, CheckpointRequests: 20,
			OnCheckpoint: func(_ time.Duration, changes int) { written <- changes },
		})
		put := func(keys int) {
			for i := range keys {
				n.put(t, fmt.Sprint(i))
			}
		}
		put(100)
		time.Sleep(10 * time.Second)
		tool, err := checkpoint.Open(vfs.OS{}, filepath.Join(dir, "checkpoint.db"), checkpoint.Newest)
		if err != nil {
			t.Fatal(err)
		}
		before := len(written)
		put(100)
		time.Sleep(3 * time.Minute)
		put(1)
		if len(written) > before {
			t.Error("a checkpoint was written while a tool read the file")
		}
		if err := tool.Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Second)
		if len(written) == before {
			t.Error("no checkpoint after the tool has ended")
		}
		put(1)
		n.close(t)
	})
}
