package generate

import (
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/test/compat/diff/exchange"
)

// OwnRule is a sequence that must never be sent to a ZooKeeper, and gozkd's error code for the
// first request of its last step.
type OwnRule struct {
	Sequence *exchange.Sequence
	Err      proto.ErrCode
}

// OwnRules returns the requests of section 17 of the specification, for which gozkd has rules of
// its own.
func OwnRules() []OwnRule {
	var rules []OwnRule
	add := func(name string, err proto.ErrCode, r req) {
		s := &script{gen: gen{seq: &exchange.Sequence{Name: name}, conns: make([]conn, 4)}}
		s.open(0)
		if err == proto.ErrUnimplemented {
			s.last(0, r)
		} else {
			s.send(0, r)
		}
		rules = append(rules, OwnRule{s.seq, err})
	}
	for mode := int32(0); mode <= 4; mode++ {
		add("ttl-crash/mode-"+string(rune('0'+mode)), proto.ErrBadArguments, (&script{}).createTTL(root+"/x", mode, -1))
	}
	add("delete-container", proto.ErrBadArguments, req{proto.OpDeleteContainer, jute.AppendString(nil, root)})
	add("create-session-op", proto.ErrUnimplemented, req{proto.OpCreateSession, jute.AppendInt(nil, 30000)})
	return rules
}
