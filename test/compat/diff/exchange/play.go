package exchange

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/internal/testkit/rawclient"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// A Player plays sequences on a server. Not safe for concurrent use.
type Player struct {
	// Members are the addresses of the servers: one, or the members of an ensemble. Before each
	// step all members catch up with the leader.
	Members []string
	// TLS is the configuration of the connections; nil: without TLS.
	TLS *tls.Config
	// ReplyTimeout is how long a reply is awaited.
	ReplyTimeout time.Duration
	// CloseTimeout is how long the server's close is awaited where ZooKeeper closes.
	CloseTimeout time.Duration

	syncs []*rawclient.Conn // to each member, for sync; empty for one server
}

// NewPlayer returns a Player with timeouts for a server on this machine, garbage collection
// included. Close releases it.
func NewPlayer(members ...string) *Player {
	return &Player{Members: members, ReplyTimeout: 5 * time.Second, CloseTimeout: 2 * time.Second}
}

// wrongPasswd is a password that fits no session.
var wrongPasswd = []byte("wrong password!!")

// unknownSession is an id that no server gives out: its server id would be 0x7e.
const unknownSession proto.SessionID = 0x7e00000000000001

// Play plays s under root and then closes all its sessions. The transcript has everything the
// server does; an error means that it could not be asked: it accepts no connections, or ctx has
// ended.
func (p *Player) Play(ctx context.Context, s *Sequence, root string) (*Transcript, error) {
	s = s.WithRoot(root)
	g := &game{
		Player: p, ctx: ctx, root: root,
		conns:  make(map[int]*client),
		seen:   make([]proto.Zxid, len(s.Steps)),
		closed: make(map[int]bool),
		t:      &Transcript{Sequence: s, Steps: make([][]Item, len(s.Steps)), Flush: make(map[int][]Item), Sessions: make(map[int]Session)},
	}
	defer g.dropAll()
	err := must.Try(func() {
		for i := range s.Steps {
			must.Doing(fmt.Sprintf("exchange: step %d", i), func() {
				must.Do(ctx.Err())
				p.catchUp(ctx)
				g.step(i, &s.Steps[i])
			})
		}
		must.Doing("exchange: after the last step", func() { p.catchUp(ctx) })
		g.flush()
		g.closeSessions()
	})
	return g.t, err
}

// game is the state of a Play call.
type game struct {
	*Player
	ctx      context.Context
	root     string
	t        *Transcript
	conns    map[int]*client
	lastZxid proto.Zxid   // largest in any reply so far
	seen     []proto.Zxid // lastZxid at the end of each step
	closed   map[int]bool // session slots that were closed by request
	out      []byte
}

// client is an open connection, the slot of its session, and the server's index in Player.Members.
type client struct {
	*rawclient.Conn
	session, member int
}

func (g *game) step(i int, step *Step) {
	items := &g.t.Steps[i]
	defer func() { g.seen[i] = g.lastZxid }()
	switch {
	case step.Connect != nil:
		g.connect(step, items)
		return
	case step.Drop:
		g.drop(step.Conn)
		return
	}
	if g.conns[step.Conn] == nil && g.t.Sequence.Reconnects {
		again := Step{Conn: step.Conn, Connect: newSession(step.Conn)}
		g.connect(&again, items)
	}
	c := g.conns[step.Conn]
	if c == nil {
		*items = append(*items, Item{Note: NoteNotThere})
		return
	}
	g.out = append(g.out[:0], step.Raw...)
	for _, r := range step.Send {
		at := len(g.out)
		g.out = rawclient.AppendRequest(g.out, r.Xid, r.Op, r.Body)
		if r.ZxidOf != nil && *r.ZxidOf < i && len(r.Body) >= 8 {
			binary.BigEndian.PutUint64(g.out[at+4+proto.RequestHeaderBytes:], uint64(g.seen[*r.ZxidOf]))
		}
	}
	for end := time.Now().Add(g.ReplyTimeout); ; time.Sleep(20 * time.Millisecond) {
		// After a failed write the reads show how the server answered.
		_ = c.Write(g.out, g.ReplyTimeout)
		for range step.Send {
			if !g.awaitReply(step.Conn, items) {
				return
			}
		}
		if step.Until == 0 || lastCode(*items) == step.Until {
			break
		}
		if time.Now().After(end) {
			last := lastCode(*items).String()
			must.Failf("the last reply is %s, want %s: %s", last, step.Until.String(), step.Send[0].words())
		}
		*items = nil
	}
	if n := len(step.Send); n > 0 && step.Send[n-1].Op == proto.OpCloseSession {
		g.closed[c.session] = true
	}
	if step.Closes {
		g.awaitClose(step.Conn, items)
	}
}

// lastCode returns the code of the last reply.
func lastCode(items []Item) proto.ErrCode {
	d := jute.NewDecoder(items[len(items)-1].Frame)
	var h proto.ReplyHeader
	h.Decode(&d)
	return h.Err
}

func (p *Player) dial(ctx context.Context, member int) *rawclient.Conn {
	addr := p.Members[member%len(p.Members)]
	if p.TLS == nil {
		return must.Get(rawclient.Dial(ctx, addr))
	}
	return rawclient.New(must.Get((&tls.Dialer{Config: p.TLS}).DialContext(ctx, "tcp", addr)))
}

// connect performs a handshake on a new connection, which stays in its slot if the server accepts.
func (g *game) connect(step *Step, items *[]Item) {
	g.drop(step.Conn)
	h := step.Connect
	conn := g.dial(g.ctx, h.Member)
	g.conns[step.Conn] = &client{conn, h.Session, h.Member}
	req := proto.ConnectRequest{ProtocolVersion: h.Protocol, TimeoutMs: h.TimeoutMs, Passwd: h.Passwd}
	if h.ReadOnly != nil {
		req.HasReadOnly, req.ReadOnly = true, *h.ReadOnly
	}
	switch h.LastZxid {
	case ZxidSeen:
		req.LastZxidSeen = g.lastZxid
	case ZxidAhead:
		req.LastZxidSeen = math.MaxInt64
	case ZxidNegative:
		req.LastZxidSeen = -5
	}
	known := g.t.Sessions[h.Session]
	switch h.How {
	case HowResume:
		req.SessionID, req.Passwd = known.ID, known.Passwd
	case HowWrongPasswd:
		req.SessionID, req.Passwd = known.ID, wrongPasswd
	case HowUnknown:
		req.SessionID, req.Passwd = unknownSession, wrongPasswd
	}
	_ = conn.Write(rawclient.AppendFrame(nil, req.Append(nil)), g.ReplyTimeout) // the read shows its effect
	if frame, ok := g.read(step.Conn, items); ok {
		*items = append(*items, Item{Frame: frame})
		d := jute.NewDecoder(frame)
		var resp proto.ConnectResponse
		resp.Decode(&d)
		if _, have := g.t.Sessions[h.Session]; (!have || h.How == HowNew) && resp.SessionID != 0 {
			g.t.Sessions[h.Session] = Session{resp.SessionID, bytes.Clone(resp.Passwd)} // the frame may change later
			delete(g.closed, h.Session)
		}
		if step.Closes {
			g.awaitClose(step.Conn, items)
		}
	}
	switch h.How {
	case HowWrongPasswd:
		g.probeVictims(step.Conn, h.Session, items)
	case HowResume:
		g.awaitVictims(step.Conn, h.Session, items)
	}
}

// awaitVictims waits until the server has closed the connections that a session had before it was
// resumed in slot conn. Which events in flight still arrive on them is random, so none is recorded.
func (g *game) awaitVictims(conn, session int, items *[]Item) {
	if g.conns[conn] == nil {
		return // not resumed
	}
	for _, slot := range slices.Sorted(maps.Keys(g.conns)) {
		if slot == conn || g.conns[slot].session != session {
			continue
		}
		if g.conns[slot].member != g.conns[conn].member {
			g.writeMoved(slot, items)
			continue
		}
		var arrived []Item
		g.awaitClose(slot, &arrived)
		note := NoteVictimClosed
		if arrived[len(arrived)-1].Note != NoteClosed {
			note = NoteVictimOpen
		}
		*items = append(*items, Item{Note: note})
	}
}

// probeVictims records whether the connections that a session has besides slot conn are alive, and
// closes them. So the rest of the sequence runs in the same state on a server that closes them and
// on a server that does not.
func (g *game) probeVictims(conn, session int, items *[]Item) {
	for _, slot := range slices.Sorted(maps.Keys(g.conns)) {
		c := g.conns[slot]
		if slot == conn || c.session != session {
			continue
		}
		var ignored []Item // events in flight: random
		_ = c.Write(rawclient.AppendRequest(nil, proto.XidPing, proto.OpPing, nil), g.ReplyTimeout)
		note := NoteVictimClosed
		if g.awaitReply(slot, &ignored) {
			note = NoteVictimOpen
		}
		*items = append(*items, Item{Note: note})
		g.drop(slot)
	}
}

// read returns the next frame of the connection in slot. Without a frame it records why and empties
// the slot.
func (g *game) read(slot int, items *[]Item) ([]byte, bool) {
	frame, err := g.conns[slot].ReadFrame(g.ReplyTimeout)
	if err != nil {
		*items = append(*items, noteOf(err, NoteNoReply))
		g.drop(slot)
	}
	return frame, err == nil
}

// noteOf notes why there was no frame; timeout is the note of a server that was silent.
func noteOf(err error, timeout Note) Item {
	switch {
	case errors.Is(err, rawclient.ErrClosed):
		return Item{Note: NoteClosed}
	case errors.Is(err, rawclient.ErrTimeout):
		return Item{Note: timeout}
	}
	return Item{Note: Note(err.Error())}
}

// awaitReply reads up to the next frame that is not an event.
func (g *game) awaitReply(slot int, items *[]Item) bool {
	for {
		frame, ok := g.read(slot, items)
		if !ok {
			return false
		}
		*items = append(*items, Item{Frame: frame})
		if isEvent(frame) {
			continue
		}
		d := jute.NewDecoder(frame)
		var h proto.ReplyHeader
		if h.Decode(&d); d.Err() == nil {
			g.lastZxid = max(g.lastZxid, h.Zxid)
		}
		return true
	}
}

// awaitClose reads until the server closes, and records what arrives.
func (g *game) awaitClose(slot int, items *[]Item) {
	for {
		frame, err := g.conns[slot].ReadFrame(g.CloseTimeout)
		if err != nil {
			*items = append(*items, noteOf(err, NoteOpen))
			g.drop(slot)
			return
		}
		*items = append(*items, Item{Frame: frame})
	}
}

// flush collects the remaining frames of each open connection.
func (g *game) flush() {
	for _, slot := range slices.Sorted(maps.Keys(g.conns)) {
		var items []Item
		_ = g.conns[slot].Write(rawclient.AppendRequest(nil, proto.XidPing, proto.OpPing, nil), g.ReplyTimeout)
		g.awaitReply(slot, &items)
		g.t.Flush[slot] = items
	}
}

// closeSessions closes all sessions, so that none expires during another sequence.
func (g *game) closeSessions() {
	for _, slot := range slices.Sorted(maps.Keys(g.conns)) {
		c := g.conns[slot]
		if g.closed[c.session] {
			continue
		}
		var ignored []Item
		_ = c.Write(rawclient.AppendRequest(nil, 1, proto.OpCloseSession, nil), g.ReplyTimeout)
		if g.awaitReply(slot, &ignored) {
			g.closed[c.session] = true
		}
	}
	for _, slot := range slices.Sorted(maps.Keys(g.t.Sessions)) {
		if !g.closed[slot] {
			g.resumeAndClose(g.t.Sessions[slot])
		}
	}
}

func (g *game) resumeAndClose(s Session) {
	conn := g.dial(g.ctx, 0)
	defer func() { _ = conn.Close() }() // the session is closed by request
	// A session that cannot be resumed is gone, as intended.
	resp, err := conn.Handshake(&proto.ConnectRequest{TimeoutMs: 30000, SessionID: s.ID, Passwd: s.Passwd}, g.ReplyTimeout)
	if err != nil || resp.SessionID == 0 {
		return
	}
	_ = conn.Write(rawclient.AppendRequest(nil, 1, proto.OpCloseSession, nil), g.ReplyTimeout)
	for err == nil {
		_, err = conn.ReadFrame(g.ReplyTimeout)
	}
}

// drop closes the connection in slot, if any.
func (g *game) drop(slot int) {
	if c := g.conns[slot]; c != nil {
		_ = c.Close() // the connection is abandoned
		delete(g.conns, slot)
	}
}

func (g *game) dropAll() {
	for slot := range g.conns {
		g.drop(slot)
	}
}

func isEvent(frame []byte) bool {
	d := jute.NewDecoder(frame)
	return d.Int() == proto.XidEvent && len(frame) > proto.ReplyHeaderBytes
}
