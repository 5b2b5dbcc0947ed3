package server_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/proto"
)

// The same with local sessions and read-only servers: a read-only server shows a committed state,
// not older than what its client has seen, and what it refuses never happens; a session with an
// ephemeral znode is never lost.
func TestHistory_Modes(t *testing.T) {
	exhaustive.Checks(t, 2, 100)
	reads := 0
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPlan(rt)
		p.modes, p.linearizable = true, false
		p.mishaps = append(p.mishaps, mishap{lasts: 5 * time.Second, what: []string{"isolate"}, whom: []int{rapid.IntRange(0, 2).Draw(rt, "isolated")}})
		history, err := p.run(t)
		if err == nil {
			err = checkHistory(history)
		}
		if err != nil {
			for _, a := range inOrderOfReplies(history) {
				rt.Log(a)
			}
			rt.Fatalf("%+v\n%v", p, err)
		}
		for _, a := range history {
			if a.fromReadOnly {
				reads++
			}
		}
	})
	if exhaustive.Enabled() && reads == 0 { // few runs may have none
		t.Error("no client read from a read-only server, so this test shows nothing")
	}
	t.Logf("%d reads of read-only servers", reads)
}

// own sometimes creates an ephemeral znode. From then on the session is one that all members know.
func (c *recordedClient) own() bool {
	if c.ephemeral || c.rng.IntN(10) != 0 {
		return true
	}
	body := create{path: fmt.Sprintf("/e%d-", c.id), mode: proto.ModeEphemeralSequential}
	c.xid++
	r := &raw{t: c.r.e.t, nc: c.nc}
	if _, err := c.nc.Write(frameOf(encodeRequest(c.xid, proto.OpCreate, body))); err != nil {
		c.hangUp()
		return false
	}
	b := r.tryRecv()
	if b == nil {
		c.hangUp()
		return false
	}
	h, _ := decodeReply(b)
	c.seen = max(c.seen, h.Zxid)
	switch {
	case h.Err == proto.OK && !c.readOnly:
		c.ephemeral = true
	case h.Err != proto.ErrNotReadOnly || !c.readOnly:
		c.r.complain("client %d: an ephemeral znode, read-only %v: %v", c.id, c.readOnly, h.Err)
	}
	return true
}

// special handles what only local sessions and read-only servers answer, and reports whether the
// action is not recorded.
func (c *recordedClient) special(h proto.ReplyHeader, a *action) bool {
	switch {
	case c.readOnly && a.kind <= actionCAS:
		if h.Err != proto.ErrNotReadOnly {
			c.r.complain("client %d: %v on a read-only connection: %v", c.id, *a, h.Err)
		}
		return true // it never happens, so nobody may see its value
	case c.readOnly:
		a.kind = actionRead // the sync was refused
	}
	// No write was needed to open the session, so a client that has seen nothing may read a state
	// from before the znodes.
	return h.Err == proto.ErrNoNode && a.kind == actionRead && c.sess.SessionID&localBit != 0 && h.Zxid < c.r.prepared
}
