package server_test

import (
	"slices"
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// Pings are answered while requests before them wait: those that came with them, and those that
// come later, one behind a part of a frame. The requests are answered in their order and in time,
// and zxids do not go back.
func TestTenant_PingsOvertake(t *testing.T) {
	bubble(t, ticks, func(t *testing.T, dial func() *raw) {
		c := connected(dial)
		c.budget("/a", 2, 0)
		c.call(7, proto.OpMulti, checks("/a", 2))
		ping := encodeRequest(proto.XidPing, proto.OpPing, nil)
		began := time.Now()
		c.burst(encodeRequest(1, proto.OpCreate, create{path: "/b"}), encodeRequest(2, proto.OpCreate, create{path: "/a"}), exists, ping,
			exists, ping)
		var last proto.Zxid
		at := func(xid int32, after time.Duration) {
			t.Helper()
			h, _ := c.reply()
			if h.Xid != xid || time.Since(began) != after || h.Zxid < last {
				t.Errorf("%+v after %v and zxid %v, want xid %d after %v", h, time.Since(began), last, xid, after)
			}
			last = h.Zxid
		}
		at(1, 0)
		at(proto.XidPing, 0)
		at(proto.XidPing, 0)
		time.Sleep(100 * time.Millisecond)
		c.burst(ping)
		at(proto.XidPing, 100*time.Millisecond)
		frame := append([]byte{0, 0, 0, byte(len(exists))}, exists...)
		if _, err := c.nc.Write(frame[:6]); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		if _, err := c.nc.Write(frame[6:]); err != nil {
			t.Fatal(err)
		}
		c.burst(ping)
		at(proto.XidPing, 200*time.Millisecond)
		at(2, 500*time.Millisecond)
		at(7, time.Second)
		at(7, 1500*time.Millisecond)
		at(7, 2*time.Second)
	})
}

// A client whose requests wait for a budget is alive while it sends, and not because they wait.
func TestTenant_SilentExpires(t *testing.T) {
	cfg := ticks
	cfg.BudgetWait = time.Hour // so a request waits for a third of its session's timeout
	bubble(t, cfg, func(t *testing.T, dial func() *raw) {
		const timeout = 12 * time.Second
		observer := connected(dial)
		observer.budget("/a", 1, 0)
		owner := func(path string) *raw {
			c := dial()
			c.connect(int32(timeout.Milliseconds()), 0, nil)
			c.call(1, proto.OpCreate, create{path: path, mode: proto.ModeEphemeral})
			return c
		}
		silent, alive := owner("/silent"), owner("/alive")
		connected(dial).spends(checks("/a", 100))
		began := time.Now()
		silent.burst(exists, exists, exists) // nobody takes the first reply, which comes after 2 s
		alive.burst(slices.Repeat([][]byte{exists}, 40)...)
		go func() { // ends with the pipe
			for alive.next() != nil {
			}
		}()
		for range 15 {
			time.Sleep(2 * time.Second)
			alive.burst(encodeRequest(proto.XidPing, proto.OpPing, nil))
			if gone := !observer.exists("/silent"); gone != (time.Since(began) > timeout) {
				t.Errorf("after %v: the session of the silent client is gone: %v", time.Since(began), gone)
			}
		}
		if !observer.exists("/alive") {
			t.Error("the session of a client that sends is gone")
		}
	})
}
