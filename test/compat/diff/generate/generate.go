package generate

import (
	"fmt"
	"math/rand/v2"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/test/compat/diff/exchange"
)

// Sequence returns the nth sequence of seed.
func Sequence(seed, n uint64) *exchange.Sequence { return generate(seed, n, 10, 40) }

// Ensemble returns the nth sequence of seed for an ensemble: its connections go to any of the
// members, and no write is malformed, see malformed-write in docs/reference/differences.md.
func Ensemble(seed, n uint64, members int) *exchange.Sequence {
	return generateFor(members, seed, n, 10, 40)
}

// Short returns a sequence of few steps, for people to read.
func Short(seed, n uint64) *exchange.Sequence { return generate(seed, n, 2, 6) }

func generate(seed, n uint64, minSteps, maxSteps int) *exchange.Sequence {
	return generateFor(1, seed, n, minSteps, maxSteps)
}

func generateFor(members int, seed, n uint64, minSteps, maxSteps int) *exchange.Sequence {
	g := &gen{
		Rand:    rand.New(rand.NewPCG(seed, n)),
		seq:     &exchange.Sequence{Name: fmt.Sprintf("seed-%d-%d", seed, n)},
		members: members,
	}
	g.sequence(minSteps + g.IntN(maxSteps-minSteps))
	return g.seq
}

const (
	maxConns     = 3
	maxPipelined = 6
)

// gen is the state of a sequence under construction.
type gen struct {
	inMulti bool // inside a multi
	members int  // of the ensemble; 1: a single server

	*rand.Rand
	seq      *exchange.Sequence
	conns    []conn
	sessions int // slots in use
	quotas   bool
	names    []string // of sequential znodes that may exist
	recent   []string // paths of the last few requests, reused so that requests interact
}

// conn is the generator's knowledge of a slot.
type conn struct {
	open    bool
	session int
	xid     int32
}

func (g *gen) sequence(steps int) {
	g.conns = make([]conn, 1+g.IntN(maxConns))
	g.connect(0, g.newSession())
	g.step(exchange.Step{Send: []exchange.Request{g.request(0, proto.OpCreate,
		create{path: q(root), data: q("root"), acl: openACL}.body(proto.OpCreate))}})
	if g.chance(70) {
		g.quota()
	}
	g.populate()
	for range steps {
		g.anyStep()
	}
}

// populate creates a few znodes, so that later requests find some.
func (g *gen) populate() {
	var send []exchange.Request
	for _, name := range []string{"/a", "/b", "/a/a", "/a/b", "/c"} {
		if g.chance(500) {
			c := create{path: q(root + name), data: g.data(), acl: openACL, mode: one[int32](g, 0, 0, 0, 1)}
			if g.chance(100) {
				c.acl = g.acls()
			}
			send = append(send, g.request(0, proto.OpCreate, c.body(proto.OpCreate)))
		}
		if g.quotas && len(send) > 0 {
			break
		}
	}
	if len(send) > 0 {
		g.step(exchange.Step{Send: send})
	}
}

func (g *gen) step(s exchange.Step) { g.seq.Steps = append(g.seq.Steps, s) }

// chance is true n times in a thousand.
func (g *gen) chance(n int) bool { return g.IntN(1000) < n }

// one returns a random element of list.
func one[T any](g *gen, list ...T) T { return list[g.IntN(len(list))] }

func (g *gen) newSession() *exchange.Connect {
	h := &exchange.Connect{Session: g.sessions, How: exchange.HowNew, TimeoutMs: 30000}
	g.sessions++
	if g.members > 1 {
		h.Member = g.IntN(g.members)
	}
	if g.chance(100) {
		h.TimeoutMs = one[int32](g, 0, -5, 1, 25000, 1e9)
	}
	if g.chance(700) {
		readOnly := g.chance(300)
		h.ReadOnly = &readOnly
	}
	if g.chance(50) {
		h.Protocol = 7
	}
	h.Passwd = one(g, make(exchange.Hex, 16), make(exchange.Hex, 16), nil, exchange.Hex{}, exchange.Hex("some password of another length"))
	h.LastZxid = one(g, exchange.ZxidZero, exchange.ZxidZero, exchange.ZxidSeen, exchange.ZxidNegative)
	return h
}

func (g *gen) connect(slot int, h *exchange.Connect) {
	refused := h.Refused()
	g.step(exchange.Step{Conn: slot, Connect: h, Closes: refused})
	g.conns[slot] = conn{open: !refused, session: h.Session, xid: g.conns[slot].xid}
}

// anyStep adds a step on some slot.
func (g *gen) anyStep() {
	slot := g.IntN(len(g.conns))
	c := &g.conns[slot]
	switch {
	case !c.open && g.chance(700), g.chance(15):
		g.reconnect(slot)
	case !c.open: // this slot stays idle for a while
	case g.chance(8):
		g.step(exchange.Step{Conn: slot, Raw: g.badFrame(), Closes: true})
		c.open = false
	case g.chance(10):
		g.step(exchange.Step{Conn: slot, Drop: true})
		c.open = false
	case g.chance(15):
		g.closing(slot)
	default:
		g.segment(slot)
	}
}

// reconnect puts a new connection into slot, for a new, an earlier, or an invalid session.
func (g *gen) reconnect(slot int) {
	h := g.newSession()
	if g.conns[slot].open && g.chance(500) || h.Session > 0 && g.chance(400) {
		g.sessions--
		h.Session = g.IntN(g.sessions) // perhaps of another slot, or closed
		h.How = exchange.HowResume
		switch {
		case g.chance(80):
			h.How = exchange.HowWrongPasswd
		case g.chance(50):
			h.How = exchange.HowUnknown
		}
		if g.chance(100) {
			h.LastZxid = exchange.ZxidAhead
		}
	}
	if h.How != exchange.HowNew && h.LastZxid != exchange.ZxidAhead {
		// The session's current connection is closed.
		for i := range g.conns {
			if i != slot && g.conns[i].session == h.Session {
				g.conns[i].open = false
			}
		}
	}
	g.connect(slot, h)
}

// closing sends a request that ends the connection, alone: replies to earlier requests of its
// segment may be lost, and later ones may or may not be answered (NIOServerCnxn.close).
func (g *gen) closing(slot int) {
	var r exchange.Request
	switch g.IntN(4) {
	case 0:
		r = g.request(slot, one(g, unknownOps...), g.bytes(g.IntN(20)))
	case 1:
		r = g.request(slot, proto.OpAuth, g.badAuth())
	default:
		r = g.request(slot, proto.OpCloseSession, nil)
	}
	g.step(exchange.Step{Conn: slot, Send: []exchange.Request{r}, Closes: true})
	for i := range g.conns {
		if i == slot || r.Op == proto.OpCloseSession && g.conns[i].session == g.conns[slot].session {
			g.conns[i].open = false
		}
	}
}

// unknownOps are answered with -6, and then the connection is closed. check outside a multi is
// among them.
var unknownOps = []proto.OpCode{10, 23, 77, 99, 108, 1 << 30, -2, -12, -20, proto.OpNotification, proto.OpError, proto.OpCheck}

// segment sends a few requests at once.
func (g *gen) segment(slot int) {
	n := 1
	if g.chance(600) {
		n += g.IntN(maxPipelined)
	}
	var send []exchange.Request
	for i := range n {
		op := g.op()
		// Replies to auth and sasl overtake those of earlier requests, because
		// ZooKeeperServer.processPacket answers them itself. So they come first.
		if op == proto.OpAuth && i > 0 {
			op = proto.OpWhoAmI
		}
		if op == proto.OpSASL && i > 0 {
			op = proto.OpPing
		}
		send = append(send, g.anyRequest(slot, op))
		// Requests after a setACL in the same segment are usually checked against the old ACL:
		// PrepRequestProcessor keeps no record of pending ACLs. ZooKeeperServer.checkQuota uses
		// committed counts, so requests after another write may exceed them.
		info := op.Info()
		if op == proto.OpSetACL || g.quotas && info.Write && info.Path != proto.PathNone {
			break
		}
	}
	g.step(exchange.Step{Conn: slot, Send: send})
}

// request returns a request with the slot's next xid, sometimes with another xid.
func (g *gen) request(slot int, op proto.OpCode, body []byte) exchange.Request {
	c := &g.conns[slot]
	c.xid++
	xid := c.xid
	switch {
	case op == proto.OpPing:
		xid = one(g, proto.XidPing, proto.XidPing, xid)
	case op == proto.OpAuth:
		xid = one(g, proto.XidAuth, xid)
	case op == proto.OpSetWatches || op == proto.OpSetWatches2:
		xid = one(g, proto.XidSetWatches, xid)
	case g.chance(10):
		xid = one[int32](g, 0, -7, -77, 1, -1<<31) // never -1, which marks events
	}
	return exchange.Request{Xid: xid, Op: op, Body: body}
}

// badFrame returns bytes after which no server can find the next frame.
func (g *gen) badFrame() []byte {
	return one(g,
		[]byte{0, 0, 0, 0},
		[]byte{0xff, 0xff, 0xff, 0xff},
		[]byte{0x7f, 0xff, 0xff, 0xff},
		[]byte{0x00, 0x10, 0x00, 0x00}, // jute.maxbuffer + 1
		[]byte{0, 0, 0, 4, 0, 0, 0, 1},
		[]byte{0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0},
		[]byte("ruok"), // a length, no longer a word
		[]byte{0x80, 0, 0, 0},
	)
}

func (g *gen) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(g.IntN(256))
	}
	return b
}
