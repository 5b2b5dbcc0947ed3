package kill

import (
	"context"
	"fmt"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// A visitor makes a session and a few ephemerals below /brief, and sometimes closes the session.
// The session timeout is short: if the server dies first, or the visitor just leaves, the
// ephemerals may expire, but all at once.
type visitor struct {
	name   string
	polite bool
	acked  int  // how many ephemerals it knows to have been made
	closed bool // and that its session was closed
	gone   bool // once they were found to be gone, they stay so
}

// visitorTimeout is the shortest that the server of these tests grants.
const (
	visitorTimeout    = time.Second
	visitorEphemerals = 3
)

func (v *visitor) path(i int) string { return fmt.Sprintf("/brief/%s.%d", v.name, i) }

// visit sends everything in one packet and reads the answers that come.
func (v *visitor) visit(ctx context.Context, addr string, l *ledger) {
	c, err := open(ctx, addr, newSession(visitorTimeout))
	if err != nil {
		return // the server is down
	}
	defer func() { _ = c.Close() }() // the server may be gone
	var b []byte
	for i := range visitorEphemerals {
		b = c.append(b, proto.OpCreate, createBody(v.path(i), v.name, proto.ModeEphemeral))
	}
	if v.polite {
		b = c.append(b, proto.OpCloseSession, nil)
	}
	floor := l.floor()
	if c.Write(b, patience) != nil {
		return
	}
	for i := int32(1); i <= c.xid; i++ {
		r, err := c.next()
		if err != nil {
			return
		}
		if r.Err != proto.OK || r.Xid != i {
			l.faultf("answer: visitor %s: request %d: reply to %d: %v", v.name, i, r.Xid, r.Err)
			return
		}
		l.ack(fmt.Sprintf("%s.%d", v.name, i), r.Zxid, floor)
		if floor = r.Zxid; i <= visitorEphemerals {
			v.acked++
		} else {
			v.closed = true
		}
	}
}

// checkVisitors compares /brief with what the visitors know. At the end all ephemerals must have
// expired. The list is of one moment; reading the ephemerals too would fail if a session expired
// meanwhile.
func checkVisitors(c *client, l *ledger, visitors []*visitor) (left int, err error) {
	paths, err := c.children("/brief")
	if err != nil {
		return 0, err
	}
	left = len(paths)
	found := make(map[string]bool, left)
	for _, p := range paths {
		found[p] = true
	}
	for _, v := range visitors {
		n := 0 // how many are there; without a gap, as they were created in order
		for i := range visitorEphemerals {
			if there := found[v.path(i)]; there && n != i {
				l.faultf("order: %s is there, the one before it is not", v.path(i))
			} else if there {
				n++
			}
			delete(found, v.path(i))
		}
		switch {
		case v.closed && n > 0:
			l.faultf("ephemeral: %d of visitor %s are there, and its session was closed", n, v.name)
		case v.gone && n > 0:
			l.faultf("ephemeral: %d of visitor %s are back", n, v.name)
		case n > 0 && n < v.acked:
			l.faultf("ephemeral: only %d of the %d of visitor %s are there", n, v.acked, v.name)
		}
		v.gone = n == 0
	}
	for p := range found {
		l.faultf("invented: %s", p)
	}
	return left, nil
}
