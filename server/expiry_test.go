package server_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/confighook"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/server"
)

// keeper is a client that does what client libraries do to keep its session: it sends pings, and if
// its server does not answer for two thirds of the timeout, it goes to the next server.
type keeper struct {
	e        *ensemble
	name     string
	members  []int // it goes to these in turn
	timeout  time.Duration
	every    time.Duration // between pings
	patience time.Duration // for an answer
	writes   bool          // it sends writes instead of pings

	id      proto.SessionID
	pass    []byte
	lost    atomic.Bool // a server said that the session is over
	answers atomic.Int64
}

// keep returns keepers of sessions with that timeout. They go to these members in turn.
func (e *ensemble) keep(n int, timeout, every time.Duration, members ...int) (keepers []*keeper) {
	for range n {
		e.clients++
		k := &keeper{e: e, name: fmt.Sprintf("c%d", e.clients), members: slices.Clone(members), timeout: timeout, every: every, patience: timeout * 2 / 3}
		keepers = append(keepers, k)
	}
	return keepers
}

// run begins to keep the session, whose ephemeral is /name.
func (k *keeper) run() {
	k.e.t.Helper()
	c := k.e.connect(k.members[0], k.timeout)
	k.id, k.pass = c.id, c.pass
	if h, _ := c.call(1, proto.OpCreate, create{path: "/" + k.name, mode: proto.ModeEphemeral}); h.Err != proto.OK {
		k.e.t.Fatal(h.Err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	// Stopped by stop and awaited at the end of the test.
	go func() {
		defer close(stopped)
		for turn := 0; !k.lost.Load(); turn++ {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
			if nc, err := k.e.dialFrom(k.name, k.members[turn%len(k.members)]); err == nil {
				k.talk(&raw{t: k.e.t, nc: nc}, stop)
				_ = nc.Close() // nothing is to be sent any more
			}
		}
	}()
	k.e.t.Cleanup(func() {
		close(stop)
		<-stopped
	})
}

// talk attaches the session and sends pings until there is no answer in time.
func (k *keeper) talk(r *raw, stop <-chan struct{}) {
	resp := new(proto.ConnectResponse)
	b := r.exchange((&proto.ConnectRequest{TimeoutMs: int32(k.timeout.Milliseconds()), SessionID: k.id, Passwd: k.pass}).Append(nil), k.patience)
	if b == nil {
		return
	}
	d := jute.NewDecoder(b)
	if resp.Decode(&d); resp.SessionID != k.id {
		k.lost.Store(true)
		return
	}
	request := (&proto.RequestHeader{Xid: proto.XidPing, Op: proto.OpPing}).Append(nil)
	if k.writes {
		request = (&proto.SetDataRequest{Path: "/" + k.name, Data: []byte("x"), Version: -1}).Append(
			(&proto.RequestHeader{Xid: 1, Op: proto.OpSetData}).Append(nil))
	}
	for r.exchange(request, k.patience) != nil {
		k.answers.Add(1)
		select {
		case <-stop:
			return
		case <-time.After(k.every):
		}
	}
}

// exchange sends a frame and returns the next frame that comes, or nil.
func (r *raw) exchange(payload []byte, patience time.Duration) []byte {
	if r.nc.SetDeadline(time.Now().Add(patience)) != nil {
		return nil
	}
	if _, err := r.nc.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(payload))), payload...)); err != nil {
		return nil
	}
	return r.next()
}

// requireKept fails the test for each session that was lost.
func requireKept(t *testing.T, keepers []*keeper) {
	t.Helper()
	for _, k := range keepers {
		if k.lost.Load() {
			t.Errorf("the session of %s expired, whose client never stopped sending", k.name)
		}
	}
}

// dead makes a session with an ephemeral, whose client ends at once.
func (e *ensemble) dead(id int, timeout time.Duration, path string) {
	e.t.Helper()
	c := e.connect(id, timeout)
	c.call(1, proto.OpCreate, create{path: path, mode: proto.ModeEphemeral})
	if err := c.nc.Close(); err != nil {
		e.t.Fatal(err)
	}
}

// livesUntil waits until a znode is gone, and returns how long after since that was.
func (r *raw) livesUntil(path string, since time.Time) time.Duration {
	r.t.Helper()
	for r.exists(path) {
		if time.Since(since) > 5*time.Minute {
			r.t.Fatalf("%s is there after %v", path, time.Since(since))
		}
		time.Sleep(50 * time.Millisecond)
	}
	return time.Since(since)
}

// A server that was paused or cut off serves a client again, and fails at once: the session of that
// client has its whole timeout.
func TestEnsemble_BackForAMoment(t *testing.T) {
	const timeout = 4 * time.Second
	for name, away := range map[string]func(e *ensemble, id int){
		"paused": func(e *ensemble, id int) {
			e.m(id).pause(true)
			time.Sleep(timeout * 7 / 10)
			e.m(id).pause(false)
		},
		"cut off while another leads": func(e *ensemble, id int) {
			leads, other := e.leader(), e.followers()[1]
			e.m(id).isolate(true)
			if _, err := e.m(leads).s.HandOver(e.t.Context(), other); err != nil {
				e.t.Fatal(err)
			}
			time.Sleep(1700 * time.Millisecond)
			e.m(id).isolate(false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
				e.startAll()
				id := e.followers()[0]
				c := e.connect(id, timeout)
				c.call(1, proto.OpCreate, create{path: "/alive", mode: proto.ModeEphemeral})
				away(e, id)
				at := time.Now()
				c.call(2, proto.OpSetData, &proto.SetDataRequest{Path: "/alive", Version: -1})
				e.m(id).kill()
				if lived := e.connect(e.leader(), time.Hour).livesUntil("/alive", at); lived < timeout {
					t.Errorf("the session ended %v after its server served it, with a timeout of %v", lived, timeout)
				}
			})
		})
	}
}

// All servers are paused at once for longer than the timeouts, as when a host is suspended or
// swaps: the clients' pings wait unread in the sockets. No session of these clients expires, and a
// session without a client expires after its timeout and the time of the pause.
func TestEnsemble_PausedTogether(t *testing.T) {
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			withEnsemble(t, n, func(t *testing.T, e *ensemble) {
				e.startAll()
				const timeout, pause = 4 * time.Second, 10 * time.Second
				var keepers []*keeper
				for i := range 40 { // at each moment, one is about to send a ping at the last moment
					k := e.keep(1, timeout, timeout*39/40, 1+i%n)[0]
					k.patience = time.Minute // it stays, and its next ping waits in the socket
					k.run()
					keepers = append(keepers, k)
					time.Sleep(timeout / 40)
				}
				observer := e.connect(1, time.Hour)
				e.dead(n, timeout, "/dead")
				died := time.Now()
				// The servers look for silent sessions 51 ms after each half second.
				time.Sleep(time.Until(died.Truncate(time.Second).Add(2060 * time.Millisecond)))
				for _, m := range e.members {
					m.pause(true)
				}
				time.Sleep(pause)
				for _, m := range e.members {
					m.pause(false)
				}
				if n > 1 { // its server may have lost its leader
					time.Sleep(time.Second)
					observer = observer.move(e, 1)
				}
				if lived := observer.livesUntil("/dead", died); lived < timeout+pause-time.Second || lived > timeout+pause+3*time.Second {
					t.Errorf("a dead session with a timeout of %v lived %v, including a pause of %v", timeout, lived, pause)
				}
				time.Sleep(10 * time.Second)
				requireKept(t, keepers)
			})
		})
	}
}

// A pause of a follower counts for its contact with the leader, although it counts for no session:
// after more than syncLimit ticks the clients are sent to other servers.
func TestEnsemble_PausedFollower(t *testing.T) {
	for pause, sentAway := range map[time.Duration]bool{3 * time.Second: false, 10 * time.Second: true} {
		t.Run(pause.String(), func(t *testing.T) {
			withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
				e.startAll()
				id := e.followers()[0]
				c := e.connect(id, time.Minute)
				e.m(id).pause(true)
				time.Sleep(pause)
				e.m(id).pause(false)
				time.Sleep(2 * time.Second)
				if n := e.said.Count("the leader has not heard this server for syncLimit ticks"); (n > 0) != sentAway {
					t.Errorf("said %d times", n)
				}
				if sentAway {
					c = c.move(e, id)
				}
				c.ping()
			})
		})
	}
}

// A process that is paused again and again loses no session, and yet a dead session ends.
func TestEnsemble_PausedAgainAndAgain(t *testing.T) {
	withEnsemble(t, 1, func(t *testing.T, e *ensemble) {
		e.startAll()
		keepers := e.keep(10, 4*time.Second, time.Second/2, 1)
		for _, k := range keepers {
			k.patience = time.Minute
			k.run()
		}
		observer := e.connect(1, time.Hour)
		e.dead(1, 4*time.Second, "/dead")
		for round := 0; ; round++ {
			e.m(1).pause(true)
			time.Sleep(3 * time.Second)
			e.m(1).pause(false)
			time.Sleep(200 * time.Millisecond)
			if !observer.exists("/dead") {
				break
			}
			if round == 20 {
				t.Fatal("a dead session with a timeout of 4 s lives after 20 pauses")
			}
		}
		requireKept(t, keepers)
	})
}

// A follower does not run, or has no link to the leader, or a slow link, for less than the timeout.
// Its clients send pings to it all the time and stay: none of them expires. A dead session of that
// follower still ends.
func TestEnsemble_FollowerNotHeard(t *testing.T) {
	for name, c := range map[string]struct {
		fault           func(m *ensembleMember, on bool)
		timeout, length time.Duration
	}{
		"paused": {(*ensembleMember).pause, 4 * time.Second, 3800 * time.Millisecond},
		"cut":    {(*ensembleMember).isolate, 4 * time.Second, 3800 * time.Millisecond},
		// Its reports are lost, and the next that arrives must tell of all that was heard
		// meanwhile.
		"torn": {(*ensembleMember).tear, 10 * time.Second, 4800 * time.Millisecond},
		// Its reports arrive late: the first say nothing about the time until they arrive.
		"slow": {func(m *ensembleMember, on bool) { m.slow(on, 1500*time.Millisecond) }, 4 * time.Second, 3800 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
				e.startAll()
				id := e.followers()[0]
				timeout := c.timeout
				keepers := e.keep(10, timeout, timeout*9/10, id)
				for _, k := range keepers {
					k.patience = time.Minute
					k.run()
					time.Sleep(timeout / 10) // so that their pings come at different times
				}
				observer := e.connect(e.leader(), time.Hour)
				e.dead(id, timeout, "/dead")
				died := time.Now()
				time.Sleep(time.Second)
				c.fault(e.m(id), true)
				time.Sleep(c.length)
				c.fault(e.m(id), false)
				if lived := observer.livesUntil("/dead", died); lived < timeout || lived > 2*timeout+2*time.Second {
					t.Errorf("a dead session with a timeout of %v lived %v", timeout, lived)
				}
				time.Sleep(10 * time.Second)
				requireKept(t, keepers)
			})
		})
	}
}

// A follower stops to run and is gone for good. Its clients' last answered pings are up to a third
// of the timeout newer than those that it has reported, and the clients wait for a whole timeout
// before they try another server: none of them expires. A dead session of the follower still ends.
func TestEnsemble_FollowerGone(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.startAll()
		const timeout, n = 30 * time.Second, 60
		id := e.followers()[0]
		keepers := e.keep(n, timeout, timeout/3, id, e.leader())
		for _, k := range keepers {
			k.run()
			time.Sleep(timeout / 3 / n) // so that their pings come at different times
		}
		observer := e.connect(e.leader(), time.Hour)
		e.dead(id, timeout, "/dead")
		died := time.Now()
		e.m(id).pause(true)
		if lived := observer.livesUntil("/dead", died); lived < timeout || lived > timeout+2*time.Second {
			t.Errorf("a session with a timeout of %v that died with its server lived %v", timeout, lived)
		}
		time.Sleep(2 * timeout)
		requireKept(t, keepers)
		e.m(id).pause(false)
	})
}

// A client of a follower sends a write, which the leader commits, and the follower is cut off
// before it reports anything: the leader knows that the client was alive.
func TestEnsemble_WriteHeardByTheLeader(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.startAll()
		id := e.followers()[0]
		observer := e.connect(e.leader(), time.Hour)
		const timeout = 10 * time.Second
		c := e.connect(id, timeout)
		c.call(1, proto.OpCreate, create{path: "/e", mode: proto.ModeEphemeral})
		time.Sleep(timeout * 8 / 10)
		written := time.Now()
		if h, _ := c.call(2, proto.OpSetData, &proto.SetDataRequest{Path: "/e", Version: -1}); h.Err != proto.OK {
			t.Fatal(h.Err)
		}
		e.m(id).isolate(true)
		if lived := observer.livesUntil("/e", written); lived < timeout || lived > timeout+3*time.Second {
			t.Errorf("a session with a timeout of %v lived %v after its last write", timeout, lived)
		}
	})
}

// tear is mute for a time after which the connections break: what the member sent meanwhile is
// lost.
func (m *ensembleMember) tear(on bool) {
	if !on {
		m.others(func(other string) { m.e.network.Tear(m.host(), other) })
	}
	m.mute(on)
}

// hangDisk gives a member a disk whose writes hang while until is in the future.
func (m *ensembleMember) hangDisk() (until *atomic.Int64) {
	until = new(atomic.Int64)
	fs := vfstest.NewFaulty(vfs.OS{}, func(op vfstest.Op) error {
		if op.Kind == vfstest.OpWrite {
			time.Sleep(time.Until(time.Unix(0, until.Load()))) // the bubble's time
		}
		return nil
	})
	m.adapt = func(c *server.Config) { confighook.Of(c).LogFS, c.NoSync = fs, true }
	return until
}

// The disk of the leader, or of both followers, hangs for longer than the timeouts.
// Clients of the followers send writes, get no answer, and try the other servers: no session
// expires, neither during the hang nor before a full timeout after it.
func TestEnsemble_DiskHangs(t *testing.T) {
	for name, hung := range map[string]func(e *ensemble) []int{
		"leader":    func(e *ensemble) []int { return []int{e.leader()} },
		"followers": func(e *ensemble) []int { return e.followers() },
	} {
		t.Run(name, func(t *testing.T) {
			withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
				e.onDisk()
				var disks []*atomic.Int64
				for _, m := range e.members {
					disks = append(disks, m.hangDisk())
				}
				e.startAll()
				members := e.followers()
				var keepers []*keeper
				for range 2 {
					for _, k := range e.keep(3, 10*time.Second, time.Second, members...) {
						k.writes = len(keepers) < 3
						k.run()
						keepers = append(keepers, k)
					}
					members[0], members[1] = members[1], members[0]
				}
				time.Sleep(10 * time.Second)
				const hang = 25 * time.Second
				for _, id := range hung(e) {
					disks[id-1].Store(time.Now().Add(hang).UnixNano())
				}
				time.Sleep(hang + 15*time.Second)
				requireKept(t, keepers)
				observer := e.connect(e.leader(), time.Hour)
				for _, k := range keepers {
					if !observer.exists("/" + k.name) {
						t.Errorf("the ephemeral of %s is gone", k.name)
					}
				}
			})
		})
	}
}

// A client of a follower whose disk hangs has sent a write and behind it a read that waits until
// the write is answered, and goes on with pings. The connection is not read meanwhile, but the
// session does not expire.
func TestEnsemble_NotReadWhileReadWaits(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.onDisk()
		var disks []*atomic.Int64
		for _, m := range e.members {
			disks = append(disks, m.hangDisk())
		}
		e.startAll()
		id := e.followers()[0]
		c, observer := e.connect(id, 4*time.Second), e.connect(e.leader(), time.Hour)
		disks[id-1].Store(time.Now().Add(9 * time.Second).UnixNano())
		root := "/"
		c.request(1, proto.OpCreate, create{path: "/e", mode: proto.ModeEphemeral})
		c.request(2, proto.OpGetEphemerals, &proto.PathRequest{Path: &root})
		for range 8 {
			time.Sleep(time.Second)
			c.request(proto.XidPing, proto.OpPing, nil)
		}
		if !observer.exists("/e") {
			t.Error("the session expired")
		}
		for _, xid := range []int32{1, 2} {
			if h, _ := c.reply(); h.Xid != xid || h.Err != proto.OK {
				t.Fatalf("%+v, want the reply to %d", h, xid)
			}
		}
	})
}
