package server

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/capacity"
	"github.com/gozkd/gozkd/server/internal/link"
	"github.com/gozkd/gozkd/server/internal/liveness"
	"github.com/gozkd/gozkd/server/internal/meter"
	"github.com/gozkd/gozkd/watch"
)

type connTable struct {
	links link.Host
	// To disconnect clients when all of them hold too much, see relieve.
	evicting   sync.Mutex                    // held while connections are chosen and closed; taken before any Link.mu
	moved      map[proto.SessionID]time.Time // when spread disconnected it; owned by the goroutine of growth
	watches    *watch.Table
	watchLimit func() int64 // how many bytes watches may take
	growth     *growth      // knows how many bytes connections and watches may take
	meter      *meter.Meter

	locals *liveness.Locals[*conn]

	mu        sync.Mutex // guards all below except turns, bursts and newcomers
	byID      map[watch.ConnID]*conn
	bySession map[proto.SessionID]*conn
	perAddr   map[string]int // without connections of DialAs
	lastID    watch.ConnID
	closing   bool // no new connection is let in
	// unattachedAt is when sessions without a connection here were last heard from, on a connection
	// that is closed or when their client asked for one, until the leader was told.
	unattachedAt map[proto.SessionID]time.Time

	turns  *turns        // not guarded
	bursts atomic.Uint64 // how often a connection had requests; not guarded

	newcomers atomic.Int32 // connections that wait for their first request; not guarded

	lastAnswers atomic.Bool // see awaitAnswers; not guarded
}

func (t *connTable) init(s *Server) {
	t.turns, t.locals = newTurns(), liveness.NewLocals(s.cfg.Tick, (*conn).LastAlive)
	t.links.Init(link.HostConfig{
		Now: s.cfg.Now, Relieve: t.relieve, Goroutines: &s.life.Goroutines, Writes: &s.writes,
		Patience: func() time.Duration { return s.live.Load().HandshakeTimeout },
	})
	t.links.Memory.Limit.Store(s.cfg.ClientMemory)
	t.watches, t.meter = s.state.watches, &s.meter
	t.growth = s.growth
	t.watchLimit = func() int64 { return s.live.Load().WatchMemory }
	t.byID, t.moved = make(map[watch.ConnID]*conn), make(map[proto.SessionID]time.Time)
	t.bySession = make(map[proto.SessionID]*conn)
	t.perAddr = make(map[string]int)
	t.unattachedAt = make(map[proto.SessionID]time.Time)
}

func (t *connTable) get(id watch.ConnID) *conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

func (t *connTable) ofSession(id proto.SessionID) *conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bySession[id]
}

func (t *connTable) all() []*conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.byID))
}

// drop closes every connection for that reason; their clients may reconnect.
func (t *connTable) drop(why string) {
	for _, c := range t.all() {
		c.closeFor(why)
	}
}

// answerPatience bounds how long a server that closes waits for answers.
const answerPatience = 100 * time.Millisecond

// awaitAnswers lets no request begin, and waits until those under way are answered: most of them
// are committed soon, and their clients need not find out what became of them.
func (t *connTable) awaitAnswers() {
	t.lastAnswers.Store(true)
	begin := time.Now()
	for _, c := range t.all() {
		for c.owesAnswers() && time.Since(begin) < answerPatience {
			time.Sleep(time.Millisecond)
		}
	}
}

func (t *connTable) refuse() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closing = true
}

func (t *connTable) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID)
}

// bind makes c the connection of a session, and closes the previous connection, which can do
// nothing for the session any more. c is nil if the session is connected elsewhere, or is over.
func (t *connTable) bind(id proto.SessionID, c *conn) {
	if old := t.swap(id, c); old != nil && old != c {
		old.closeFor(sessionMoved)
	}
}

// swap is bind without closing the previous connection, which it returns.
func (t *connTable) swap(id proto.SessionID, c *conn) (old *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old = t.bySession[id]
	if c != nil && !c.removed {
		t.bySession[id], c.bound = c, id
	} else {
		delete(t.bySession, id)
	}
	return old
}

// remove removes a connection. Its session is released later, by release.
func (t *connTable) remove(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.removed = true
	delete(t.byID, c.id)
	t.counted(-c.cost)
	if c.as != nil {
		return
	}
	if t.perAddr[c.addr]--; t.perAddr[c.addr] == 0 {
		delete(t.perAddr, c.addr)
	}
}

// counted notes that a connection has come or gone, with that much memory. t.mu is held.
func (t *connTable) counted(bytes int64) {
	t.growth.connections.Add(bytes)
	t.links.SetCount(len(t.byID))
}

// attached returns the memory of the connections with sessions, also local ones.
func (t *connTable) attached() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.growth.connections.Load() / int64(max(1, len(t.byID))) * int64(len(t.bySession)+t.locals.Connected())
}

func (t *connTable) secured(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !c.removed {
		c.cost += capacity.TLSCost
		t.growth.connections.Add(capacity.TLSCost)
	}
}

// release records when the session of c was last heard from on c, unless another connection has it,
// which release reports.
func (t *connTable) release(c *conn, now time.Time) (had bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := c.bound
	if had = id != 0 && t.bySession[id] == c; had {
		delete(t.bySession, id)
		t.heardUnattached(id, c.LastAlive(now))
	}
	return had
}

// noteOwner records that a session's client was heard from on another connection than its own.
func (t *connTable) noteOwner(id proto.SessionID, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.heardUnattached(id, now)
}

// heardUnattached records when a session was heard from in unattachedAt. An earlier time changes
// nothing: the client may have claimed its session on another connection meanwhile. t.mu is held.
func (t *connTable) heardUnattached(id proto.SessionID, at time.Time) {
	if at.After(t.unattachedAt[id]) {
		t.unattachedAt[id] = at
	}
}

// heardSince calls f for each session that was heard from after that time, and forgets unattachedAt
// of all other sessions. f may be called twice for a session.
func (t *connTable) heardSince(after, now time.Time, f func(id proto.SessionID, heard time.Time)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, c := range t.bySession {
		if heard := c.LastAlive(now); heard.After(after) {
			f(id, heard)
		}
	}
	for id, heard := range t.unattachedAt {
		if heard.After(after) {
			f(id, heard)
		} else {
			delete(t.unattachedAt, id)
		}
	}
}
