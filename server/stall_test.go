package server_test

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/confighook"
	"github.com/gozkd/gozkd/internal/testkit/logbuf"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// If the disk hangs for longer than a session's timeout, no session is lost: clients that wait for
// a write are not read, and none can re-attach meanwhile.
func TestStalledDisk(t *testing.T) {
	var stall atomic.Bool
	var said logbuf.Buffer
	cfg := ticks
	cfg.Dir = t.TempDir()
	cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: &said})
	confighook.Of(&cfg).LogFS = vfstest.NewFaulty(vfs.OS{}, func(op vfstest.Op) error {
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
		for _, line := range []string{"the disk of the log does not answer", "the disk of the log answers again: after_ms=30000"} {
			if n := said.Count(line); n != 1 {
				t.Errorf("%q was logged %d times", line, n)
			}
		}
	})
}

// If the disk of the leader's log hangs, another member leads within two election timeouts. No
// client of the others is disconnected, and the leader's own clients get their replies when its
// disk answers again.
func TestEnsemble_LeaderDiskHangs(t *testing.T) {
	const twoElections = 2 * 250 * time.Millisecond // with the ensemble's tick
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		var hung atomic.Int64
		e.onDisk()
		e.each(func(c *server.Config) {
			confighook.Of(c).LogFS = vfstest.NewFaulty(vfstest.NewMem(), func(op vfstest.Op) error {
				for op.Kind == vfstest.OpSync && hung.Load() == int64(c.MemberID) {
					time.Sleep(10 * time.Millisecond)
				}
				return nil
			})
		})
		e.startAll()
		first := e.leader()
		busy, idle := e.pipes(e.followers()[0]), e.connect(e.followers()[1], time.Minute)
		own := e.pipes(first)
		stall := func() (pending float64, stalls string) {
			m := e.monitor(first)
			pending, err := strconv.ParseFloat(m["zk_gozkd_log_pending_seconds"], 64)
			if err != nil {
				t.Error(err)
			}
			return pending, m["zk_gozkd_log_stalls_total"]
		}
		time.Sleep(time.Second)
		hung.Store(int64(first))
		time.Sleep(25 * time.Second)
		if next := e.leader(); next == first {
			t.Errorf("member %d still leads", first)
		}
		if pending, stalls := stall(); pending < 24 || stalls != "1" {
			t.Errorf("a write has been pending for %v s, and %s hung", pending, stalls)
		}
		hung.Store(0)
		time.Sleep(2 * time.Second)
		ends(t, busy, twoElections)
		if h, _ := idle.call(1, proto.OpCreate, create{path: "/idle"}); h.Err != proto.OK {
			t.Error(h)
		}
		ends(t, own, 26*time.Second)
		if pending, stalls := stall(); pending != 0 || stalls != "1" {
			t.Errorf("afterwards a write has been pending for %v s, and %s hung", pending, stalls)
		}
		for _, line := range []string{"the disk of the log does not answer", "leads no longer, because the disk", "the disk of the log answers again"} {
			if n := e.said.Count(line); n != 1 {
				t.Errorf("%q was logged %d times", line, n)
			}
		}
	})
}
