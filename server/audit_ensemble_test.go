package server_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/audit"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/server"
)

// trails gives each member an audit log.
func (e *ensemble) trails() (logs []*trail) {
	for _, m := range e.members {
		l := new(trail)
		logs = append(logs, l)
		m.adapt = func(c *server.Config) { c.Audit, c.SuperDigest, c.ReconfigEnabled = l, superDigest(), true }
	}
	return logs
}

// answered is what a reply and an event have in common.
type answered struct {
	session proto.SessionID
	xid     int32
	zxid    proto.Zxid
	err     proto.ErrCode
}

// TestAudit_EachReply (A1): clients of three members pipeline writes, of which many fail. The log
// of a client's member has one event for each reply, in the order of the replies, and no other
// member's log has one.
func TestAudit_EachReply(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		logs := e.trails()
		e.startAll()
		random := rand.New(rand.NewPCG(1, 2))
		const perClient = 120
		var clients []*raw
		for i := range 6 {
			clients = append(clients, e.connect(i%3+1, time.Hour))
		}
		want := make([][]answered, len(logs))
		for _, l := range logs {
			l.take()
		}
		for round := range 3 {
			for _, c := range clients {
				for i := range perClient / 3 {
					op, body := randomWrite(random)
					c.request(int32(round*perClient+i+1), op, body)
				}
			}
			for i, c := range clients {
				for range perClient / 3 {
					h, _ := c.reply()
					want[i%3] = append(want[i%3], answered{c.id, h.Xid, h.Zxid, h.Err})
				}
			}
		}
		synctest.Wait()
		for i, l := range logs {
			var got []answered
			for _, ev := range l.events {
				a := answered{ev.Session, ev.Xid, ev.Zxid, ev.Err}
				if a.xid == 0 {
					t.Errorf("member %d: an event without a request: %+v", i+1, ev)
				}
				if ev.Operation == audit.Multi {
					a.err = proto.OK // of the reply's header
				}
				if !ev.InMulti || len(got) == 0 || got[len(got)-1] != a { // a multi has several events
					got = append(got, a)
				}
			}
			for _, c := range clients {
				of := func(list []answered) []answered {
					return slices.DeleteFunc(slices.Clone(list), func(a answered) bool { return a.session != c.id })
				}
				if g, w := of(got), of(want[i]); !slices.Equal(g, w) {
					t.Errorf("member %d, session %v: %d events for %d replies\n%v\n%v", i+1, c.id, len(g), len(w), g, w)
				}
			}
		}
	})
}

// randomWrite returns a write to a few znodes.
func randomWrite(random *rand.Rand) (proto.OpCode, record) {
	path := fmt.Sprintf("/%d", random.IntN(5))
	op := func() proto.MultiOp {
		ops := []proto.OpCode{proto.OpCreate, proto.OpDelete, proto.OpSetData}
		return proto.MultiOp{Op: ops[random.IntN(len(ops))], Path: path, ACL: proto.OpenACL(), Version: -1}
	}
	switch random.IntN(6) {
	case 0:
		return proto.OpCreate, create{path: path, op: proto.OpCreate}
	case 1:
		return proto.OpDelete, &proto.PathVersionRequest{Path: path, Version: -1}
	case 2:
		return proto.OpSetData, &proto.SetDataRequest{Path: path, Version: int32(random.IntN(3) - 1)}
	case 3:
		return proto.OpSetACL, &proto.SetACLRequest{Path: path, ACL: proto.OpenACL(), Version: -1}
	case 4:
		return proto.OpMulti, &proto.MultiRequest{Ops: []proto.MultiOp{op()}}
	}
	return proto.OpDelete, bytesRecord(jute.AppendInt(nil, 100)) // malformed
}

// A reconfig has one event, on the server that answers it. Every member logs that a session
// expired.
func TestAudit_Ensemble(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		logs := e.trails()
		e.startAll()
		admin := e.admin(2)
		silent := e.connect(1, 5*time.Second)
		silent.call(1, proto.OpCreate, create{path: "/e", mode: proto.ModeEphemeral, op: proto.OpCreate})
		synctest.Wait()
		for _, l := range logs {
			l.take()
		}
		admin.mustReconfig(change{leaving: "3"})
		if _, _, code := admin.reconfig(change{leaving: "3", version: 7}); code != proto.ErrBadVersion {
			t.Errorf("a change of another version: %v", code)
		}
		wantTrail(t, logs[1], "reconfig success  [digest super,super ,ip c1]", "reconfig failure  [digest super,super ,ip c1] -103")
		wantTrail(t, logs[0])
		time.Sleep(time.Minute)
		for _, l := range logs[:2] {
			wantTrail(t, l, "ephemeralZNodeDeletionOnSessionCloseOrExpire success /e []", "expireSession success  []")
		}
	})
}
