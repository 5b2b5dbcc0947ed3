package consensus

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/vfstest"
)

// For 30 s no file descriptor is left, except those of the reserve for the log. Meanwhile the log
// needs new segments and a checkpoint is due. The node goes on, and writes the checkpoint
// afterwards.
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
