package server_test

import (
	"encoding/binary"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/confighook"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// has fails unless the words mntr has each line.
func has(t *testing.T, dial func() *raw, lines ...string) {
	t.Helper()
	mntr := word(t, dial, "mntr")
	for _, line := range lines {
		if !strings.Contains(mntr, "\n"+line+"\n") {
			t.Errorf("mntr has no line %q", line)
		}
	}
}

// A connect request without a token is closed without an answer, and a later one succeeds.
func TestConnectionThrottle(t *testing.T) {
	cfg := ticks
	cfg.Words = []string{"mntr"}
	cfg.ConnectionThrottle = server.ConnectionThrottle{Tokens: 2, FillTime: time.Second}
	bubble(t, cfg, func(t *testing.T, dial func() *raw) {
		first := dial()
		first.connect(10_000, 0, nil)
		dial().connect(10_000, 0, nil)
		if !dial().unanswered(0, nil) || !dial().unanswered(first.id, first.pass) {
			t.Error("answered without a token")
		}
		has(t, dial, "zk_connection_request_count\t2", "zk_connection_rejected\t2", "zk_connection_drop_probability\t0.0",
			"zk_max_connection_token_deficit\t2", "zk_cnt_connection_token_deficit\t2")
		time.Sleep(1100 * time.Millisecond)
		if resp := dial().connect(10_000, first.id, first.pass); resp.SessionID != first.id {
			t.Errorf("after a second: %+v", resp)
		}
		if !dial().unanswered(0, nil) {
			t.Error("answered without a token")
		}
	})
}

// requests sends frames with one write, because the server may read nothing after the first.
func (r *raw) requests(frames ...[]byte) {
	r.t.Helper()
	var all []byte
	for _, f := range frames {
		all = append(binary.BigEndian.AppendUint32(all, uint32(len(f))), f...)
	}
	if _, err := r.nc.Write(all); err != nil {
		r.t.Fatal(err)
	}
}

// hangingDisk returns cfg with a disk that hangs for 30 s of the bubble when the result is set.
func hangingDisk(t *testing.T, cfg server.Config) (server.Config, *atomic.Bool) {
	hang := new(atomic.Bool)
	cfg.Dir = t.TempDir()
	confighook.Of(&cfg).LogFS = vfstest.NewFaulty(vfs.OS{}, func(op vfstest.Op) error {
		if op.Kind == vfstest.OpSync && hang.CompareAndSwap(true, false) {
			time.Sleep(30 * time.Second)
		}
		return nil
	})
	return cfg, hang
}

// Behind a write that hangs, a write waits, and is then refused because it waited too long. A write
// that waits for longer than its session's timeout is dropped with its connection, if that is
// configured, or counted.
func TestRequestThrottle(t *testing.T) {
	for _, tc := range []struct {
		stale, keep, dropped bool
		counts               []string
	}{
		{true, false, true, []string{"zk_stale_requests_dropped\t1", "zk_stale_requests\t0", "zk_request_throttle_wait_count\t2"}},
		{true, true, false, []string{"zk_stale_requests_dropped\t0", "zk_stale_requests\t1", "zk_request_throttle_wait_count\t1"}},
		{false, false, false, []string{"zk_stale_requests_dropped\t0", "zk_stale_requests\t0", "zk_request_throttle_wait_count\t1"}},
	} {
		cfg, hang := hangingDisk(t, ticks)
		cfg.Words = []string{"mntr"}
		cfg.RequestThrottle = server.RequestThrottle{Limit: 1, OpWaitTime: 5 * time.Second, StaleLatency: tc.stale, KeepStale: tc.keep}
		serverBubble(t, cfg, func(t *testing.T, s *server.Server, dial func() *raw) {
			first, waits, late := dial(), dial(), dial()
			for _, c := range []*raw{first, waits} {
				c.connect(60_000, 0, nil)
			}
			late.connect(10_000, 0, nil)
			hang.Store(true)
			first.request(1, proto.OpCreate, create{path: "/first"})
			time.Sleep(time.Second)
			type reply struct {
				conn *raw
				want proto.ErrCode
			}
			replies := []reply{{first, proto.OK}}
			if tc.dropped { // otherwise it depends on who is first how often each waits
				waits.requests(
					create{path: "/waits"}.Append((&proto.RequestHeader{Xid: 1, Op: proto.OpCreate}).Append(nil)),
					(&proto.PathWatchRequest{Path: "/waits"}).Append((&proto.RequestHeader{Xid: 2, Op: proto.OpExists}).Append(nil)),
					create{path: "/next"}.Append((&proto.RequestHeader{Xid: 3, Op: proto.OpCreate}).Append(nil)),
				)
				replies = append(replies, reply{waits, proto.ErrThrottledOp}, reply{waits, proto.ErrNoNode}, reply{waits, proto.OK})
			} else {
				replies = append(replies, reply{late, proto.ErrThrottledOp})
			}
			late.request(1, proto.OpCreate, create{path: "/late"})
			if tc.dropped {
				if took := late.closedIn(time.Minute); took < 10*time.Second || took > 11*time.Second {
					t.Errorf("a stale write was dropped after %v", took)
				}
			}
			for _, c := range replies {
				if h, _ := c.conn.reply(); h.Err != c.want {
					t.Errorf("%+v: %+v, want %v", tc, h, c.want)
				}
			}
			if h, _ := first.call(2, proto.OpExists, &proto.PathWatchRequest{Path: "/late"}); h.Err != proto.ErrNoNode {
				t.Errorf("the dropped write: %+v", h)
			}
			has(t, dial, append(tc.counts, "zk_throttled_ops\t1", "zk_cnt_request_throttle_queue_time_ms\t1")...)
			time.Sleep(time.Minute)
			theirs := func(e *server.EndedSession) bool { return e.Session == late.id.String() }
			if over := s.Facts().EndedSessions(theirs, 1); len(over) != 1 || strings.Contains(over[0].Story, "its write waited for too long") != tc.dropped {
				t.Errorf("%+v: ended sessions: %+v", tc, over)
			}
		})
	}
}

// Without the limit, a write waits as long as it takes.
func TestRequestThrottle_Off(t *testing.T) {
	cfg, hang := hangingDisk(t, ticks)
	cfg.OutstandingLimit = 1
	cfg.RequestThrottle = server.RequestThrottle{OpWaitTime: 5 * time.Second, StaleLatency: true}
	bubble(t, cfg, func(t *testing.T, dial func() *raw) {
		first, waits := dial(), dial()
		first.connect(10_000, 0, nil)
		waits.connect(10_000, 0, nil)
		hang.Store(true)
		first.request(1, proto.OpCreate, create{path: "/first"})
		time.Sleep(time.Second)
		if h, _ := waits.call(1, proto.OpCreate, create{path: "/waits"}); h.Err != proto.OK {
			t.Error(h)
		}
	})
}

// A large request that is too much for those under way costs its connection, before its bytes have
// arrived. Others are not affected, and afterwards there is room again.
func TestLargeRequests(t *testing.T) {
	cfg, hang := hangingDisk(t, ticks)
	cfg.Words = []string{"mntr"}
	cfg.LargeRequestThreshold, cfg.LargeRequestMaxBytes = 1000, 3000
	bubble(t, cfg, func(t *testing.T, dial func() *raw) {
		large := &proto.SetDataRequest{Path: "/", Version: -1, Data: make([]byte, 2000)}
		first, second, small := dial(), dial(), dial()
		for _, c := range []*raw{first, second, small} {
			c.connect(60_000, 0, nil)
		}
		hang.Store(true)
		first.request(1, proto.OpSetData, large)
		time.Sleep(time.Second)
		if _, err := second.nc.Write([]byte{0, 0, 2000 >> 8, 2000 & 0xff}); err != nil {
			t.Fatal(err)
		}
		if took := second.closedIn(time.Minute); took > time.Second {
			t.Errorf("closed after %v", took)
		}
		if h, _ := small.call(1, proto.OpExists, &proto.PathWatchRequest{Path: "/"}); h.Err != proto.OK {
			t.Error(h)
		}
		if h, _ := first.reply(); h.Err != proto.OK {
			t.Error(h)
		}
		for i := range int32(3) {
			if h, _ := first.call(2+i, proto.OpSetData, large); h.Err != proto.OK {
				t.Error(h)
			}
		}
		has(t, dial, "zk_large_requests_rejected\t1")
	})
}
