package server_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/proto"
)

// If the disk hangs for longer than a session's timeout, no session is lost: clients that wait for
// a write are not read, and none can re-attach meanwhile.
func TestStalledDisk(t *testing.T) {
	var stall atomic.Bool
	cfg := ticks
	cfg.Dir = t.TempDir()
	cfg.FS = vfstest.NewFaulty(vfs.OS{}, func(op vfstest.Op) error {
		if op.Kind == vfstest.OpSync && stall.CompareAndSwap(true, false) {
			time.Sleep(30 * time.Second) // the bubble's time
		}
		return nil
	})
	bubble(t, cfg, func(t *testing.T, dial func() *raw) {
		c, gone := dial(), dial()
		c.connect(10_000, 0, nil)
		gone.connect(10_000, 0, nil)
		stall.Store(true)
		c.request(1, proto.OpCreate, create{path: "/e", mode: proto.ModeEphemeral})
		if err := gone.nc.Close(); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if h, _ := c.reply(); h.Err != proto.OK || time.Since(start) < 30*time.Second {
			t.Fatalf("%+v after %v", h, time.Since(start))
		}
		if h, _ := c.call(proto.XidPing, proto.OpPing, nil); h.Err != proto.OK {
			t.Fatal(h)
		}
		time.Sleep(9 * time.Second) // a full timeout counts from the end of the stall
		again := dial()
		if resp := again.connect(10_000, gone.id, gone.pass); resp.SessionID != gone.id {
			t.Errorf("a session whose client had to reconnect during the stall: %+v", resp)
		}
		if h, _ := c.call(2, proto.OpExists, &proto.PathWatchRequest{Path: "/e"}); h.Err != proto.OK {
			t.Errorf("the ephemeral: %+v", h)
		}
	})
}
