package datatree

import (
	"testing"

	"github.com/gozkd/gozkd/proto"
)

// TestApply_KnowsEveryWrite: Apply has a case for exactly the operations that the table of proto
// calls writes.
func TestApply_KnowsEveryWrite(t *testing.T) {
	for info := range proto.Ops() {
		tree := fuzzTree(t)
		r := Request{Op: info.Code, Session: fuzzSession, ConnEpoch: 1}
		switch info.Code {
		case proto.OpExpireSession, proto.OpConfigDone, proto.OpInitConfig, proto.OpDeleteContainer, proto.OpSetLimit: // proposed by servers
			r.Session = 0
		}
		res, _ := tree.Apply(Header{Zxid: tree.LastZxid() + 1}, &r)
		if known := res.Err != proto.ErrUnimplemented; known != info.Write {
			t.Errorf("%s: applied with %v, and Write is %v", info.Name, res.Err, info.Write)
		}
	}
}
