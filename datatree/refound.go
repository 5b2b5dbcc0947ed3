package datatree

import (
	"fmt"

	"github.com/gozkd/gozkd/proto"
)

// Refounded counts the records that Refound removed from a tree.
type Refounded struct {
	Sessions, Ephemerals int
	Members              int // of the former ensemble
}

// Refound turns the state into the initial state of another ensemble: it removes the members, and
// closes every session, which deletes its ephemerals, unless keepSessions is set. The closings are
// transactions of epoch, in the order of session ids, at time timeMs. epoch must be above
// LastZxid's. Everything else stays. Why: docs/adr/0003-restore-founds-a-new-ensemble.md.
//
// Refound is not a replicated operation: the caller must have the only copy of the state.
func (t *Tree) Refound(epoch uint32, timeMs int64, keepSessions bool) Refounded {
	done := Refounded{Sessions: len(t.sessions), Ephemerals: t.numEphemerals, Members: len(t.ensemble.current)}
	t.SetLastZxid(proto.Zxid(int64(epoch) << 32))
	for s := range t.Sessions() {
		if keepSessions {
			done.Sessions, done.Ephemerals = 0, 0
			break
		}
		r := Request{Session: s.ID, ConnEpoch: s.ConnEpoch, Op: proto.OpCloseSession}
		if res, _ := t.Apply(Header{Zxid: t.lastZxid.Next(), TimeMs: timeMs}, &r); res.Err != proto.OK {
			// The session exists and has this epoch.
			panic(fmt.Sprintf("datatree: session %v is not closed: %v", s.ID, res.Err))
		}
	}
	t.replaceLimit(Limit{}) // it was that of other members
	if t.ensemble.empty() {
		return done
	}
	t.lastZxid = t.lastZxid.Next()
	t.setEnsemble(ensembleRecord{})
	t.setConfigText([]byte{}, t.lastZxid, timeMs) // as on a standalone server
	return done
}
