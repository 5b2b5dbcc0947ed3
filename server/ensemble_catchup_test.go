package server_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/server"
)

// pair writes the same number to two znodes in one transaction, and much data to one of many
// others, which makes the log long and the state large.
type pair struct {
	n       int
	ballast []byte
}

const ballasts = 30

func ballast(i int) string { return fmt.Sprintf("/ballast-%d", i%ballasts) }

func (p pair) Append(b []byte) []byte {
	number := fmt.Append(nil, p.n)
	r := &proto.MultiRequest{}
	for _, path := range []string{"/left", ballast(p.n), "/right"} {
		value := number
		if path == ballast(p.n) {
			value = p.ballast
		}
		r.Ops = append(r.Ops, proto.MultiOp{Op: proto.OpSetData, Path: path, Data: value, Version: -1})
	}
	return r.Append(b)
}

// readPair returns both numbers, read in one request.
type readPair struct{}

func (readPair) Append(b []byte) []byte {
	r := &proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpGetData, Path: "/left"}, {Op: proto.OpGetData, Path: "/right"}}}
	return r.Append(b)
}

func (r *raw) pair() (left, right string, zxid proto.Zxid, ok bool) {
	r.t.Helper()
	_ = r.nc.SetDeadline(time.Time{})
	if _, err := r.nc.Write(frame(1, proto.OpMultiRead, readPair{})); err != nil {
		return "", "", 0, false
	}
	b := r.tryRecv()
	if b == nil {
		return "", "", 0, false
	}
	d := jute.NewDecoder(b)
	var h proto.ReplyHeader
	h.Decode(&d)
	var got [2]proto.DataResponse
	for i := range got {
		d.Int()
		d.Bool()
		d.Int()
		got[i].Decode(&d)
	}
	if h.Err != proto.OK || d.Err() != nil {
		r.t.Errorf("pair: %v, %v", h.Err, d.Err())
	}
	return string(got[0].Data), string(got[1].Data), h.Zxid, true
}

// follow reads pairs on a member until stop is closed, and re-attaches its session when the
// connection is lost. The numbers of a pair must be equal, and must never decrease.
func (e *ensemble) follow(c *raw, id int, stop <-chan struct{}) {
	var last proto.Zxid
	lost := 0
	for {
		select {
		case <-stop:
			e.t.Logf("member %d: the reader lost its connection %d times", id, lost)
			return
		default:
		}
		left, right, zxid, ok := c.pair()
		if !ok {
			lost++
			if c = e.reattach(c, id, last, stop); c == nil {
				return
			}
			continue
		}
		if left != right || zxid < last {
			e.t.Errorf("member %d: pair %s and %s, zxid %v after %v", id, left, right, zxid, last)
		}
		last = zxid
		time.Sleep(20 * time.Millisecond)
	}
}

// reattach tries until a member accepts the session.
func (e *ensemble) reattach(c *raw, id int, last proto.Zxid, stop <-chan struct{}) *raw {
	for {
		select {
		case <-stop:
			return nil
		case <-time.After(100 * time.Millisecond):
		}
		nc, err := e.dialFrom("reader", id)
		if err != nil {
			continue
		}
		next := &raw{t: e.t, nc: nc, id: c.id, pass: c.pass}
		e.t.Cleanup(func() { _ = nc.Close() })
		hello := &proto.ConnectRequest{TimeoutMs: 60_000, SessionID: c.id, Passwd: c.pass, LastZxidSeen: last, HasReadOnly: true}
		if _, err := nc.Write(frameOf(hello.Append(nil))); err != nil {
			continue
		}
		if b := next.tryRecv(); b != nil {
			d := jute.NewDecoder(b)
			var resp proto.ConnectResponse
			if resp.Decode(&d); resp.SessionID != c.id {
				e.t.Errorf("member %d: the session is gone", id)
				return nil
			}
			return next
		}
	}
}

// A member that was away for longer than the log in memory reaches back fetches the whole state.
// Its clients never see a part of it.
func TestEnsemble_CatchUpByCheckpoint(t *testing.T) {
	for away, disk := range map[string]bool{"cut off for a moment": false, "down": false, "cut off": true, "torn transfers": true} {
		if !exhaustive.Enabled() && (away == "down" || away == "cut off") {
			continue
		}
		t.Run(away, func(t *testing.T) {
			withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
				if disk {
					e.onDisk()
					e.each(func(c *server.Config) { c.SnapCount = 10 })
				}
				e.startAll()
				victim := e.followers()[0]
				m := e.m(victim)
				w := e.connect(e.leader(), time.Minute)
				for _, path := range []string{"/left", "/right"} {
					w.call(1, proto.OpCreate, create{path: path})
				}
				for i := range ballasts {
					w.call(1, proto.OpCreate, create{path: ballast(i)})
				}
				n := 0
				write := func(times, bytes int) {
					for range times {
						n++
						if h, _ := w.call(2, proto.OpMulti, pair{n, make([]byte, bytes)}); h.Err != proto.OK {
							t.Fatal(h.Err)
						}
					}
				}
				write(1, 1)
				c := e.connect(victim, time.Minute)
				c.sync()
				stop := make(chan struct{})
				var reading sync.WaitGroup
				reading.Go(func() { e.follow(c, victim, stop) }) // ends with stop
				if away == "down" {
					m.kill()
				} else {
					m.isolate(true)
				}
				if away == "cut off for a moment" {
					e.network.Tear(m.host(), e.m(e.leader()).host()) // so that no message is in flight
					time.Sleep(time.Second)
				} else {
					time.Sleep(20 * time.Second)
				}
				write(45, 600_000) // more than the log in memory keeps
				before := e.said.Count(m.host() + ".consensus: installed a checkpoint")
				switch away {
				case "down":
					e.start(victim)
				case "torn transfers":
					m.slow(true, 40*time.Millisecond) // a transfer takes three seconds
					m.isolate(false)
					for range 8 {
						time.Sleep(time.Second)
						e.network.Tear(m.host(), e.m(e.leader()).host())
					}
					m.slow(false, 0)
				default:
					m.isolate(false)
				}
				write(20, 1000)
				time.Sleep(10 * time.Second)
				e.awaitVoters(1, 2, 3)
				write(20, 1000)
				if e.said.Count(m.host()+".consensus: installed a checkpoint") == before {
					t.Error("no checkpoint was installed, so this test shows nothing")
				}
				if away == "torn transfers" && e.said.Count(m.host()+".consensus: a checkpoint did not arrive") == 0 {
					t.Error("no transfer was torn, so this test shows nothing")
				}
				r := e.connect(victim, time.Minute)
				r.sync()
				if left, right, _, ok := r.pair(); !ok || left != fmt.Sprint(n) || right != left {
					t.Errorf("the pair is %s and %s, want %d", left, right, n)
				}
				close(stop)
				reading.Wait()
				if disk { // the installed checkpoint is on disk
					m.kill()
					e.start(victim)
					r := e.connect(victim, time.Minute)
					if left, right, _, ok := r.pair(); !ok || left != right {
						t.Errorf("after a restart the pair is %s and %s", left, right)
					}
				}
			})
		})
	}
}

// A checkpoint from another member skips changes for which watches did not fire, and replies that
// this server cannot give: the clients' connections are closed before any of them sees the new
// state, and their requests are dropped.
func TestEnsemble_InstallClosesConnections(t *testing.T) {
	withSuper(t, 6, func(t *testing.T, e *ensemble) {
		e.startWith(e.lines()[:3], e.members[:3]...)
		e.settle()
		victim := e.followers()[0]
		w := e.connect(e.leader(), time.Hour)
		w.call(1, proto.OpCreate, create{path: "/x"})
		admin := e.admin(victim)
		admin.sync()
		// Its joiners do not run: it fails while the victim is cut off.
		admin.request(7, proto.OpReconfig, change{joining: strings.Join(e.lines()[3:], ",")})
		var watching sync.WaitGroup
		for range exhaustive.Or(2, 20) { // each reads all the time
			r := e.connect(victim, time.Hour)
			watching.Go(func() { r.watchUntilClosed("/x") }) // ends when the server closes the connection
		}
		time.Sleep(100 * time.Millisecond)
		e.m(victim).isolate(true)
		e.network.Tear(e.m(victim).host(), e.m(e.leader()).host()) // nothing is under way any more
		time.Sleep(time.Second)
		for range 45 {
			if h, _ := w.call(2, proto.OpSetData, &proto.SetDataRequest{Path: "/x", Data: make([]byte, 600_000), Version: -1}); h.Err != proto.OK {
				t.Fatal(h.Err)
			}
		}
		time.Sleep(time.Second)
		e.m(victim).isolate(false)
		watching.Wait()
		if e.said.Count(e.m(victim).host()+".consensus: installed a checkpoint") != 1 {
			t.Error("no checkpoint was installed, so this test shows nothing")
		}
		if admin.recv() != nil {
			t.Error("a reconfig was answered by a server that does not know its result")
		}
		if stats := e.word(victim, "mntr"); !strings.Contains(stats, "zk_outstanding_requests\t0\n") {
			t.Errorf("requests remain outstanding:\n%s", stats)
		}
	})
}

// watchUntilClosed sets a watch with each read, and reads again before the event has come: then
// nothing may have changed.
func (r *raw) watchUntilClosed(path string) {
	var last proto.Stat
	watched := false
	read := frame(1, proto.OpExists, &proto.PathWatchRequest{Path: path, Watch: true})
	for {
		if _, err := r.nc.Write(read); err != nil {
			return
		}
		for {
			b := r.tryRecv()
			if b == nil {
				return
			}
			d := jute.NewDecoder(b)
			var h proto.ReplyHeader
			if h.Decode(&d); h.Xid == proto.XidEvent {
				watched = false
				continue
			}
			var st proto.Stat
			if st.Decode(&d); watched && st != last {
				r.t.Errorf("version %d after version %d, and no event in between", st.Version, last.Version)
				return // the connection may never be closed
			}
			last, watched = st, true
			break
		}
	}
}

// A member that was down, or out of touch until its clients were refused, is ready when it has
// applied what was committed when it found its leader, also if the leader is the same as before. A
// member that was ready stays so when it lags.
func TestEnsemble_ReadyMeansCaughtUp(t *testing.T) {
	for _, away := range []string{"down", "out of touch"} {
		t.Run(away, func(t *testing.T) {
			withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
				e.onDisk()
				e.startAll()
				e.settle()
				leader, victim := e.leader(), e.followers()[0]
				m := e.m(victim)
				w := e.connect(leader, time.Minute)
				w.call(1, proto.OpCreate, create{path: "/x"})
				write := func(times int) {
					for range times {
						r := &proto.SetDataRequest{Path: "/x", Data: make([]byte, 100_000), Version: -1}
						if h, _ := w.call(2, proto.OpSetData, r); h.Err != proto.OK {
							t.Fatal(h.Err)
						}
					}
				}
				isReady := func() bool { return m.s.NotServing() == nil }
				if away == "down" {
					m.stop()
					write(50)
					m.slow(true, 50*time.Millisecond)
					m.begin(e.lines())
				} else {
					m.isolate(true)
					if !e.becomes(func() bool { return !isReady() }) {
						t.Fatal("a member without contact is ready")
					}
					write(50)
					m.slow(true, 50*time.Millisecond)
					m.isolate(false)
				}
				committed := e.m(leader).s.Status().Zxid
				behind := false
				for n := 0; !isReady(); n++ {
					if n == 12_000 {
						t.Fatal("not ready after a minute")
					}
					st := m.s.Status()
					behind = behind || st.CatchingUp && st.Leader == leader && st.Zxid < committed
					time.Sleep(5 * time.Millisecond)
				}
				if st := m.s.Status(); st.Zxid < committed || st.CatchingUp || e.leader() != leader {
					t.Errorf("ready at %x, of %x: %+v", st.Zxid, committed, st)
				}
				if !behind {
					t.Error("the member never lagged, so this test shows nothing")
				}
				m.deafen(true)
				write(50)
				if st := m.s.Status(); !isReady() || st.Zxid >= e.m(leader).s.Status().Zxid {
					t.Errorf("a member that lags is not ready, or does not lag: %+v", st)
				}
			})
		})
	}
}
