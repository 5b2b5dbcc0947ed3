package server

import (
	"testing"

	"github.com/gozkd/gozkd/proto"
)

// On a read-only server a session may live that others opened later than what this server knows,
// also if a restore has moved the epoch to where local sessions have their bit, or beyond the bits
// that a session's id has.
func TestJudgeReadOnly(t *testing.T) {
	const local = proto.SessionID(3)<<56 | localBit | 12345
	id := func(zxid proto.Zxid) proto.SessionID {
		return proto.SessionID(2)<<56 | proto.SessionID(zxid)&(1<<56-1)
	}
	zxid := func(epoch, counter proto.Zxid) proto.Zxid { return epoch<<32 | counter }
	for _, c := range []struct {
		name string
		last proto.Zxid
		id   proto.SessionID
		want judgement
	}{
		{"later", zxid(5, 9), id(zxid(5, 10)), claimUnanswered},
		{"of a later epoch", zxid(5, 9), id(zxid(6, 1)), claimUnanswered},
		{"earlier, and not in the tree", zxid(5, 9), id(zxid(5, 8)), claimRefused},
		{"the last", zxid(5, 9), id(zxid(5, 9)), claimRefused},
		{"local, of another server", zxid(5, 9), local, claimRefused},
		{"later, of epochs with the bit", zxid(1<<23+5, 9), id(zxid(1<<23+6, 1)), claimUnanswered},
		{"earlier, of epochs with the bit", zxid(1<<23+5, 9), id(zxid(1<<23+4, 1)), claimRefused},
		{"later, of an epoch that wraps", zxid(1<<24-1, 9), id(zxid(1<<24, 1)), claimUnanswered},
		{"later, after a wrap", zxid(1<<24+1, 9), id(zxid(1<<24+2, 1)), claimUnanswered},
	} {
		s, err := New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		s.tree.SetLastZxid(c.last)
		if got := s.judgeReadOnly(c.id); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
