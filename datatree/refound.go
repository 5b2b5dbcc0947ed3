package datatree

import (
	"fmt"

	"github.com/gozkd/gozkd/proto"
)

// Refounded says what Refound took from a tree.
type Refounded struct {
	Sessions, Ephemerals int
	Members              int // of the ensemble that it had
}

// Refound makes the state the beginning of another ensemble's: every session is closed, with its ephemerals, and the members are forgotten. That is done
// by transactions of epoch, in the order of the sessions' ids, with timeMs as their time; the epoch must be
// above LastZxid's. Everything else is as it was. Why: docs/adr/0003-restore-founds-a-new-ensemble.md.
//
// It is no replicated operation: it is for one who has the only copy of the state.
func (t *Tree) Refound(epoch uint32, timeMs int64) Refounded {
	done := Refounded{Sessions: len(t.sessions), Ephemerals: t.numEphemerals, Members: len(t.ensemble.current)}
	t.SetLastZxid(proto.Zxid(int64(epoch) << 32))
	for s := range t.Sessions() {
		r := Request{Session: s.ID, ConnEpoch: s.ConnEpoch, Op: proto.OpCloseSession}
		if res, _ := t.Apply(Header{Zxid: t.lastZxid.Next(), TimeMs: timeMs}, &r); res.Err != proto.OK {
			panic(fmt.Sprintf("datatree: session %v is not closed: %v", s.ID, res.Err)) // it was there, and so was its epoch
		}
	}
	if t.ensemble.empty() {
		return done
	}
	t.lastZxid = t.lastZxid.Next()
	t.setEnsemble(ensembleRecord{})
	n := t.get(configPath)
	rec := n.record()
	rec.setData([]byte{}) // as a standalone server has it
	rec.version = -1      // as after every reconfig
	rec.mzxid, rec.mtimeMs = t.lastZxid, timeMs
	t.replace(n, &rec)
	return done
}
