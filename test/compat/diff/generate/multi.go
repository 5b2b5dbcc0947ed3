package generate

import (
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// multi returns the body of a multi: a few writes and checks, sometimes with a misplaced operation.
func (g *gen) multi() []byte {
	g.inMulti = true
	defer func() { g.inMulti = false }()
	var b []byte
	for range one(g, 0, 1, 1, 2, 2, 3, 3, 4, 6) {
		op := one(g, proto.OpCreate, proto.OpCreate, proto.OpCreate2, proto.OpDelete, proto.OpSetData, proto.OpSetData, proto.OpCheck)
		switch {
		case g.chance(30):
			op = one(g, proto.OpCreateContainer, proto.OpCreateTTL)
		case g.chance(15):
			op = one(g, proto.OpSetACL, proto.OpExists, proto.OpGetData, proto.OpGetChildren, proto.OpSync, 77, proto.OpError)
		}
		b = multiHeader(b, op, false)
		switch op {
		case proto.OpCheck:
			b = append(b, pathInt(g.path(), g.version())...)
		case 77, proto.OpError:
		default:
			b = append(b, g.body(op)...)
		}
	}
	return g.terminate(b)
}

// multiRead returns the body of a multiRead, sometimes with a write in it.
func (g *gen) multiRead() []byte {
	var b []byte
	for range one(g, 0, 1, 2, 3, 5) {
		op := one(g, proto.OpGetData, proto.OpGetChildren)
		if g.chance(20) {
			op = one(g, proto.OpExists, proto.OpCreate, proto.OpGetChildren2)
		}
		b = append(multiHeader(b, op, false), g.body(op)...)
	}
	return g.terminate(b)
}

func (g *gen) terminate(b []byte) []byte {
	switch {
	case g.chance(10):
		return b // without an end
	case g.chance(20):
		return jute.AppendInt(jute.AppendBool(jute.AppendInt(b, 1), true), 5) // only done counts
	}
	return multiHeader(b, -1, true)
}
