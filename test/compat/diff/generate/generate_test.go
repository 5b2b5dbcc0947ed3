package generate

import (
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/proto"
)

// The rules of what a sequence never holds, over many sequences: see the comments where they are
// applied.
func TestSequence_Rules(t *testing.T) {
	seen := make(map[proto.OpCode]int)
	for n := range exhaustive.Or[uint64](500, 3000) {
		s := Sequence(7, n)
		if !s.Equal(Sequence(7, n)) {
			t.Fatalf("sequence %d is not a function of its seed", n)
		}
		for i, step := range s.Steps {
			for k, r := range step.Send {
				seen[r.Op]++
				switch {
				case r.Op == proto.OpDeleteContainer || r.Op == proto.OpCreateSession:
					t.Errorf("sequence %d step %d has a %v", n, i, r.Op)
				case kills(r.Op, r.Body):
					t.Errorf("sequence %d step %d would end ZooKeeper", n, i)
				case r.Op == proto.OpSetACL && k != len(step.Send)-1:
					t.Errorf("sequence %d step %d has a setACL that is not the last", n, i)
				case (r.Op == proto.OpAuth || r.Op == proto.OpSASL) && k != 0:
					t.Errorf("sequence %d step %d has a %v that is not the first", n, i, r.Op)
				case r.Xid == proto.XidEvent:
					t.Errorf("sequence %d step %d has an xid that is that of events", n, i)
				}
			}
			if step.Raw != nil && !step.Closes {
				t.Errorf("sequence %d step %d does not await the close", n, i)
			}
		}
	}
	for _, w := range weights {
		if seen[w.op] == 0 {
			t.Errorf("no sequence has a %v", w.op)
		}
	}
	for _, op := range unknownOps {
		if seen[op] == 0 {
			t.Errorf("no sequence has a %v", op)
		}
	}
}

func TestScenarios_HaveNames(t *testing.T) {
	names := make(map[string]bool)
	for _, s := range Scenarios() {
		if s.Name == "" || names[s.Name] {
			t.Errorf("no name, or one that is there twice: %q", s.Name)
		}
		names[s.Name] = true
		if s.Requests() < 3 {
			t.Errorf("%s asks next to nothing", s.Name)
		}
	}
}

// What ends ZooKeeper, or parts it from gozkd, is asked of gozkd alone.
func TestKills(t *testing.T) {
	bad := (&script{}).createTTL("/x", 0, -1)
	if !kills(bad.op, bad.body) {
		t.Error("a createTTL of mode 0 with ttl -1 is not known to end ZooKeeper")
	}
	if good := (&script{}).createTTL("/x", 5, -1); kills(good.op, good.body) {
		t.Error("a TTL mode with ttl -1 is answered with -8, and can be asked")
	}
}
