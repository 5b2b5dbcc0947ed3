package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/rawclient"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// A mover is a client that goes from member to member, and comes back to those that it left a
// moment ago. Its session has an ephemeral znode, so it is one that all members know. It must live
// for its timeout after the last answer, wherever that came from, and so must the znode.
type mover struct {
	w       *world
	name    string
	rng     *rand.Rand
	timeout time.Duration

	id       proto.SessionID
	passwd   []byte
	seen     proto.Zxid
	tries    int
	path     string        // of the ephemeral znode, if that is known to exist
	answered time.Duration // when a member that was not read-only last answered
	used     time.Duration // when a request was last sent
}

// moverTimeouts has the session timeout of each mover.
var moverTimeouts = []time.Duration{sessionTimeout, sessionTimeout, 5 * tick}

func (w *world) newMover(name string, timeout time.Duration) *mover {
	return &mover{w: w, name: name, rng: w.rand(name), timeout: timeout}
}

// run moves until stop is closed.
func (v *mover) run(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(between(v.rng, 0, time.Second) + v.w.rest(v.rng)):
		}
		c, err := v.dial(v.w.members[v.rng.IntN(len(v.w.members))])
		if err == nil {
			v.visit(c)
			_ = c.Close() // the session lives on
		}
	}
}

// entitled reports whether the session must be alive. A member that is cut off, and dies before it
// has closed its connections, costs syncLimit ticks: see server/internal/liveness.
func (v *mover) entitled() bool {
	return v.path != "" && v.w.now() < v.answered+v.timeout-syncLimit*tick
}

// overdue reports whether the session must have expired. Members round its end up to a tick, and
// need a moment to agree.
func (v *mover) overdue() bool {
	return v.id != 0 && min(v.w.now()-v.used, v.w.quietFor()) > v.timeout+3*tick
}

// dial connects to a member.
func (v *mover) dial(m *member) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), probePatience)
	defer cancel()
	return v.w.dial(ctx, probeHost, m.clientAddress())
}

// visit attaches the session, or makes one, and uses it for a while.
func (v *mover) visit(c net.Conn) {
	readOnly, ok := v.attach(c)
	if !ok {
		return
	}
	if v.path == "" {
		v.tries++
		path := fmt.Sprintf("/%s-%d", v.name, v.tries)
		if code, err := v.ask(c, 1, proto.OpCreate, ephemeral(path)); err != nil || code != proto.OK {
			return
		}
		v.path = path
	}
	for xid := int32(2); xid < 2+int32(v.rng.IntN(5)); xid++ {
		if v.look(c, xid, readOnly) != nil {
			return
		}
		time.Sleep(between(v.rng, 0, 2*time.Second))
	}
}

// attach attaches the session, or makes one.
func (v *mover) attach(c net.Conn) (readOnly, ok bool) {
	hello := proto.ConnectRequest{
		TimeoutMs: int32(v.timeout.Milliseconds()), SessionID: v.id, Passwd: v.passwd, LastZxidSeen: v.seen, HasReadOnly: true, ReadOnly: true,
	}
	if v.id == 0 {
		hello.Passwd = make([]byte, proto.PasswdBytes)
	}
	overdue, rested := v.overdue(), v.w.now()-v.used
	v.used = v.w.now()
	b, err := probeAsk(c, rawclient.AppendFrame(nil, hello.Append(nil)))
	if err != nil {
		return false, false
	}
	var resp proto.ConnectResponse
	d := jute.NewDecoder(b)
	if resp.Decode(&d); resp.TimeoutMs <= 0 {
		if v.entitled() {
			v.w.complain("%s lost session %v, which was last answered at %v", v.name, v.id, v.answered)
		}
		if overdue {
			v.w.expired.Add(1)
		}
		v.forget()
		return false, false
	}
	if overdue {
		v.w.complain("%s continued session %v of %v after a rest of %v without faults", v.name, v.id, v.timeout, rested)
	}
	v.id, v.passwd = resp.SessionID, append([]byte(nil), resp.Passwd...)
	if !resp.ReadOnly {
		v.answered = v.w.now()
	}
	return resp.ReadOnly, true
}

// forget leaves the session behind.
func (v *mover) forget() { v.id, v.path = 0, "" }

// look asks for the ephemeral znode.
func (v *mover) look(c net.Conn, xid int32, readOnly bool) error {
	code, err := v.ask(c, xid, proto.OpExists, (&proto.PathWatchRequest{Path: v.path}).Append(nil))
	if err != nil {
		return err
	}
	if code != proto.OK && v.entitled() {
		v.w.complain("%s, session %v: its ephemeral znode: %v", v.name, v.id, code)
	}
	if !readOnly {
		v.answered = v.w.now()
	}
	return nil
}

// ephemeral returns the body of a request that creates an ephemeral znode.
func ephemeral(path string) []byte {
	create := proto.CreateRequest{Path: path, ACL: proto.OpenACL(), Mode: proto.ModeEphemeral}
	return create.Append(nil, proto.OpCreate)
}

// ask sends a request and returns the error code of the reply.
func (v *mover) ask(c net.Conn, xid int32, op proto.OpCode, body []byte) (proto.ErrCode, error) {
	v.used = v.w.now()
	b, err := probeAsk(c, rawclient.AppendRequest(nil, xid, op, body))
	if err != nil {
		return 0, err
	}
	var h proto.ReplyHeader
	d := jute.NewDecoder(b)
	h.Decode(&d)
	v.seen = max(v.seen, h.Zxid)
	return h.Err, nil
}
