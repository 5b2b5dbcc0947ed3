package server_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/rawclient"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/server"
)

// plan describes one run: the ensemble, its clients, and the faults.
type plan struct {
	seed         uint64
	disk         bool
	linearizable bool // LinearizableReads: clients need no sync
	lies         bool // they behave as if it were set
	modes        bool // sessions are local at first, and a member becomes read-only soon after it is cut off
	clients      int
	level        uint64 // the highest feature level of the version that the members begin with; 0: of this one
	mishaps      []mishap
	then         func(e *ensemble) // happens after the mishaps, if it is not nil
}

// mishap is a fault of one member, or of two at once, that begins after a time and lasts a while.
type mishap struct {
	after, lasts time.Duration
	what         []string // the fault of each member that is hit: one or two
	whom         []int    // counted from the leader on, which is 0
}

func (m mishap) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "after %v for %v:", m.after, m.lasts)
	for i, what := range m.what {
		fmt.Fprintf(&b, " %s leader+%d", what, m.whom[i])
	}
	return b.String()
}

var mishaps = []string{"kill", "stop", "isolate", "mute", "deafen", "slow", "pause", "tear", "remove"}

func drawPlan(t *rapid.T) plan {
	ms := func(label string, low, high int) time.Duration {
		return time.Duration(rapid.IntRange(low, high).Draw(t, label)) * time.Millisecond
	}
	return plan{
		seed: rapid.Uint64().Draw(t, "seed"), disk: rapid.Bool().Draw(t, "disk"), linearizable: rapid.Bool().Draw(t, "linearizable"),
		clients: rapid.IntRange(2, 6).Draw(t, "clients"),
		mishaps: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) mishap {
			m := mishap{after: ms("after", 0, 1500), lasts: ms("lasts", 0, 3000)}
			for _, whom := range rapid.SliceOfNDistinct(rapid.IntRange(0, 2), 1, 2, rapid.ID).Draw(t, "whom") {
				m.whom = append(m.whom, whom)
				m.what = append(m.what, rapid.SampledFrom(mishaps).Draw(t, "what"))
			}
			return m
		}), 0, 6).Draw(t, "mishaps"),
	}
}

// Whatever faults occur, the guarantees to clients hold: writes and synced reads are linearizable,
// each client's view is sequential, zxids are in one order everywhere, and no session is lost. The
// flag -rapid.checks sets the number of runs, -rapid.seed repeats a run.
func TestHistory(t *testing.T) {
	exhaustive.Checks(t, 2, 100)
	runs, actions, unknown := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPlan(rt)
		history, err := p.run(t)
		runs++
		actions += len(history)
		unknown += len(history) - len(inOrderOfReplies(history))
		if err == nil {
			err = checkHistory(history)
		}
		if err != nil {
			for _, a := range inOrderOfReplies(history) {
				rt.Log(a)
			}
			rt.Fatalf("%+v\n%v", p, err)
		}
	})
	t.Logf("%d runs, %d requests, %d of them with an unknown outcome", runs, actions, unknown)
}

// The checks also find the violation of a real server: reads that the test wrongly takes for
// linearizable.
func TestHistory_FindsStaleReads(t *testing.T) {
	p := plan{seed: 1, linearizable: true, lies: true, clients: 4, mishaps: []mishap{{lasts: 3 * time.Second, what: []string{"slow"}, whom: []int{1}}}}
	history, err := p.run(t)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkHistory(history); !errors.Is(err, errNotLinearizable) {
		t.Errorf("%v, want %v", err, errNotLinearizable)
	}
}

// run executes the plan and returns the actions of the clients.
func (p plan) run(t *testing.T) (history []action, err error) {
	cryptotest.SetGlobalRandom(t, p.seed)
	synctest.Test(t, func(t *testing.T) {
		e := newEnsemble(t, 3, newNetwork())
		if p.disk {
			e.onDisk()
		}
		e.each(func(c *server.Config) {
			c.SuperDigest = superDigest()
			c.NoSync, c.SnapCount, c.LinearizableReads = true, 50, p.linearizable && !p.lies
			if p.modes {
				c.ReadOnlyMode, c.LocalSessions, c.LocalSessionUpgrades, c.SyncLimit = true, true, true, 1
			}
			if p.level != 0 {
				server.SetLevels(c, p.level)
			}
		})
		e.startAll()
		e.settle()
		r := &recorder{e: e, plan: p}
		r.prepare()
		var clients sync.WaitGroup
		defer clients.Wait()
		defer r.stop.Store(true)
		for i := range p.clients {
			c := &recordedClient{r: r, id: i, rng: rand.New(rand.NewPCG(p.seed, uint64(i)))}
			clients.Go(c.run) // ends soon after stop
		}
		for _, m := range p.mishaps {
			time.Sleep(m.after)
			e.befall(m, p.disk)
		}
		if p.then != nil {
			p.then(e)
		}
		time.Sleep(time.Second)
		e.awaitVoters(1, 2, 3)
		r.stop.Store(true)
		clients.Wait()
		err = cmp.Or(r.problem(), r.sameStates())
		history = r.history
	})
	return history, err
}

// befall carries out a mishap, and waits until it is over.
func (e *ensemble) befall(m mishap, disk bool) {
	leader := e.leader()
	var over, start, join []func()
	for i, what := range m.what {
		v := e.m((leader-1+m.whom[i])%3 + 1)
		if what == "kill" || what == "stop" {
			if !disk && len(start)+len(join) > 0 {
				continue // the state would be lost
			}
			if what == "kill" {
				v.kill()
			} else {
				v.stop()
			}
			start = append(start, func() { e.start(v.id) })
			continue
		}
		if what == "remove" {
			if len(join) > 0 || len(start) > 0 && !disk {
				continue // one member alone would remain, which is refused, or one without state of two, which cannot be repaired
			}
			removed := make(chan struct{})
			go func() { // ends when a member has done it, which may take until the other mishap is over
				defer close(removed)
				e.insist(change{leaving: strconv.Itoa(v.id)})
			}()
			join = append(join, func() {
				<-removed
				e.insist(change{joining: v.line})
			})
			continue
		}
		fault := map[string]func(on bool){
			"isolate": v.isolate, "mute": v.mute, "deafen": v.deafen, "pause": v.pause,
			"slow": func(on bool) { v.slow(on, 60*time.Millisecond) },
			"tear": func(bool) { e.network.Tear(v.host(), "") },
		}[what]
		fault(true)
		over = append(over, func() { fault(false) })
	}
	time.Sleep(m.lasts)
	for _, end := range slices.Concat(over, start, join) { // a later action may need the others
		end()
	}
	if !disk {
		e.awaitVoters(1, 2, 3) // a member that lost its state must have it again before the next one loses its state
	}
}

// recorder keeps the actions of all clients.
type recorder struct {
	e     *ensemble
	plan  plan
	stop  atomic.Bool
	clock atomic.Int64
	value atomic.Int64

	prepared proto.Zxid // the znodes are there

	mu       sync.Mutex
	history  []action
	problems []string
}

const historyKeys = 3

func key(i int) string { return "/k" + strconv.Itoa(i) }

// prepare creates the znodes, with version 0 and value 0.
func (r *recorder) prepare() {
	c := r.e.connect(1, time.Minute)
	for i := range historyKeys {
		body := (&proto.CreateRequest{Path: key(i), Data: []byte("0"), ACL: proto.OpenACL()}).Append(nil, proto.OpCreate)
		h, _ := c.call(1, proto.OpCreate, bytesRecord(body))
		if h.Err != proto.OK {
			r.e.t.Fatal(h.Err)
		}
		r.prepared = h.Zxid
	}
}

func (r *recorder) complain(format string, args ...any) {
	r.mu.Lock()
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
	r.mu.Unlock()
}

func (r *recorder) problem() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.problems) > 0 {
		return fmt.Errorf("%s", strings.Join(r.problems, "\n"))
	}
	return nil
}

// sameStates compares the digests of all members at the same zxid.
func (r *recorder) sameStates() error {
	for range 1000 {
		var states []string
		for _, m := range r.e.members {
			states = append(states, server.StateOf(m.s))
		}
		at := func(s string) string { zxid, _, _ := strings.Cut(s, " "); return zxid }
		if at(states[0]) == at(states[1]) && at(states[1]) == at(states[2]) {
			if states[0] != states[1] || states[1] != states[2] {
				return fmt.Errorf("the states differ: %v", states)
			}
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("the members don't come to the same zxid")
}

// recordedClient sends several requests in one write, and records the replies. It connects to
// another member when its connection is lost, and sometimes without a reason, with or without
// waiting for replies.
type recordedClient struct {
	r    *recorder
	id   int
	rng  *rand.Rand
	nc   net.Conn // nil: none
	at   int      // member
	sess proto.ConnectResponse
	seen proto.Zxid
	xid  int32

	versions [historyKeys]int32 // as last seen
	// of the previous connection, without a reply: when a global session is re-attached they are
	// done, or never will be
	limbo []action

	// With plan.modes:
	readOnly  bool // the connection
	ephemeral bool // the client was told that the session has an ephemeral znode
}

func (c *recordedClient) run() {
	defer c.hangUp()
	for !c.r.stop.Load() {
		if c.nc == nil && !c.attach() {
			time.Sleep(time.Duration(5+c.rng.IntN(50)) * time.Millisecond)
			continue
		}
		if !c.burst() || c.rng.IntN(40) == 0 {
			c.hangUp()
		}
		time.Sleep(time.Duration(1+c.rng.IntN(60)) * time.Millisecond)
	}
	c.settle(never)
}

func (c *recordedClient) hangUp() {
	if c.nc != nil {
		_ = c.nc.Close()
		c.nc = nil
	}
}

// settle records the actions in limbo, with the time by which they have happened if they ever do.
func (c *recordedClient) settle(end int64) {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	for _, a := range c.limbo {
		a.end = end
		c.r.history = append(c.r.history, a)
	}
	c.limbo = nil
}

// attach creates the session on a member, or re-attaches it.
func (c *recordedClient) attach() bool {
	c.at = 1 + c.rng.IntN(3)
	if c.r.plan.modes && !c.ephemeral && c.rng.IntN(2) == 0 { // another client, which may have seen nothing yet
		c.settle(never)
		c.id += 100
		c.sess, c.seen, c.versions = proto.ConnectResponse{}, 0, [historyKeys]int32{}
	}
	nc, err := c.r.e.dialFrom("c"+strconv.Itoa(c.id), c.at)
	if err != nil {
		return false
	}
	hello := &proto.ConnectRequest{
		TimeoutMs: 60_000, SessionID: c.sess.SessionID, Passwd: c.sess.Passwd, LastZxidSeen: c.seen, HasReadOnly: true, ReadOnly: c.r.plan.modes,
	}
	if _, err := nc.Write(frameOf(hello.Append(nil))); err != nil {
		_ = nc.Close()
		return false
	}
	b := (&raw{t: c.r.e.t, nc: nc}).tryRecv()
	if b == nil {
		_ = nc.Close()
		return false
	}
	d := jute.NewDecoder(b)
	var resp proto.ConnectResponse
	if resp.Decode(&d); d.Err() == nil && resp.SessionID == 0 && c.sess.SessionID&localBit != 0 && !c.ephemeral {
		c.sess = proto.ConnectResponse{} // a local session is over where it is not known
		_ = nc.Close()
		return false
	}
	if d.Err() != nil || resp.SessionID == 0 || c.sess.SessionID != 0 && resp.SessionID != c.sess.SessionID {
		c.r.complain("client %d: session %v was lost: member %d answered %+v, %v", c.id, c.sess.SessionID, c.at, resp, d.Err())
		c.sess = proto.ConnectResponse{}
		_ = nc.Close()
		return false
	}
	if resp.SessionID&localBit == 0 {
		c.settle(c.r.clock.Add(1))
	}
	c.nc, c.sess, c.readOnly = nc, resp, resp.ReadOnly
	return !c.r.plan.modes || c.own()
}

// burst sends some requests and waits for their replies. It returns false if the connection is
// broken.
func (c *recordedClient) burst() bool {
	var frames []byte
	var actions []action
	for range 1 + c.rng.IntN(4) {
		a := action{client: c.id, key: c.rng.IntN(historyKeys), kind: actionKind(c.rng.IntN(4))}
		if c.r.plan.linearizable && a.kind == actionRead {
			a.kind = actionSyncRead // without a sync
		}
		body := (&proto.PathWatchRequest{Path: key(a.key)}).Append(nil)
		op := proto.OpGetData
		switch a.kind {
		case actionSet, actionCAS:
			a.value, a.version = int(c.r.value.Add(1)), -1
			if a.kind == actionCAS {
				a.version = c.versions[a.key]
			}
			body = (&proto.SetDataRequest{Path: key(a.key), Data: strconv.AppendInt(nil, int64(a.value), 10), Version: a.version}).Append(nil)
			op = proto.OpSetData
		case actionSyncRead:
			if !c.r.plan.linearizable {
				path := key(a.key)
				c.xid++
				frames = rawclient.AppendRequest(frames, c.xid, proto.OpSync, (&proto.PathRequest{Path: &path}).Append(nil))
			}
		}
		c.xid++
		frames = rawclient.AppendRequest(frames, c.xid, op, body)
		actions = append(actions, a)
	}
	first := c.xid
	for i := range actions {
		actions[i].call = c.r.clock.Add(1)
		if first--; c.synced(actions[i]) {
			first--
		}
	}
	if _, err := c.nc.Write(frames); err != nil {
		c.leave(actions) // a part of them may have arrived
		return false
	}
	impatient := c.rng.IntN(15) == 0
	for i := range actions {
		if impatient && c.rng.IntN(2) == 0 || !c.reply(&actions[i], &first) {
			c.leave(actions[i:])
			return false
		}
	}
	return true
}

// synced reports whether there is a sync before the action.
func (c *recordedClient) synced(a action) bool {
	return a.kind == actionSyncRead && !c.r.plan.linearizable
}

// leave puts the writes that were not answered in limbo.
func (c *recordedClient) leave(actions []action) {
	if !c.readOnly {
		c.limbo = append(c.limbo, slices.DeleteFunc(slices.Clone(actions), func(a action) bool { return a.kind > actionCAS })...)
	}
}

// reply reads the reply to an action, and the reply to its sync.
func (c *recordedClient) reply(a *action, xid *int32) bool {
	var h proto.ReplyHeader
	var d jute.Decoder
	for range 1 + map[bool]int{true: 1}[c.synced(*a)] {
		b := (&raw{t: c.r.e.t, nc: c.nc}).tryRecv()
		if b == nil {
			return false
		}
		d = jute.NewDecoder(b)
		h.Decode(&d)
		if *xid++; h.Xid != *xid {
			c.r.complain("client %d: xid %d instead of %d", c.id, h.Xid, *xid)
			return false
		}
		if h.Zxid < c.seen {
			c.r.complain("client %d: zxid %v from member %d, after %v", c.id, h.Zxid, c.at, c.seen)
		}
		c.seen = h.Zxid
	}
	a.zxid = h.Zxid
	if c.special(h, a) {
		return true
	}
	switch {
	case h.Err == proto.ErrBadVersion && a.kind == actionCAS:
		a.result = resultBadVersion
	case h.Err != proto.OK:
		c.r.complain("client %d: %v: %v", c.id, *a, h.Err)
		return false
	case a.kind <= actionCAS:
		var st proto.Stat
		st.Decode(&d)
		if a.kind == actionCAS && st.Version != a.version+1 {
			c.r.complain("client %d: %v wrote version %d", c.id, *a, st.Version)
		}
		a.result, a.version, a.mzxid = resultOK, st.Version, st.Mzxid
	default:
		var resp proto.DataResponse
		resp.Decode(&d)
		a.result, a.version, a.mzxid = resultOK, resp.Stat.Version, resp.Stat.Mzxid
		var err error
		if a.value, err = strconv.Atoi(string(resp.Data)); err != nil {
			c.r.complain("client %d: %v: %v", c.id, *a, err)
		}
	}
	if d.Err() != nil {
		c.r.complain("client %d: %v: %v", c.id, *a, d.Err())
	}
	if a.result == resultOK {
		c.versions[a.key] = a.version
	}
	a.end = c.r.clock.Add(1)
	a.reply, a.fromReadOnly = a.end, c.readOnly
	c.r.mu.Lock()
	c.r.history = append(c.r.history, *a)
	c.r.mu.Unlock()
	return true
}
