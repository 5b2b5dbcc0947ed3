package generate

import (
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// The rules of what a sequence never holds, over many sequences: see the comments where they are
// applied.
func TestSequence_Rules(t *testing.T) {
	seen := make(map[proto.OpCode]int)
	for n := range exhaustive.Or[uint64](500, 3000) {
		s := Sequence(7, n)
		if s.String() != Sequence(7, n).String() {
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

// A sequence for an ensemble has no write that stops a ZooKeeper ensemble, and uses every member.
func TestEnsemble_Rules(t *testing.T) {
	const members = 3
	used, damaged := make(map[int]int), 0
	for n := range exhaustive.Or[uint64](300, 3000) {
		s := Ensemble(7, n, members)
		for i, step := range s.Steps {
			if step.Connect != nil {
				used[step.Connect.Member]++
			}
			for _, r := range step.Send {
				switch d := jute.NewDecoder(r.Body); r.Op {
				case proto.OpMulti:
					var m proto.MultiRequest
					_ = m.Decode(&d, r.Op) // the operations before an error are there
					for _, o := range m.Ops {
						if o.Op.Info().Write && o.Op != proto.OpDelete && o.Op != proto.OpSetData && o.ACL == nil {
							t.Errorf("sequence %d step %d has a %v with a null ACL in a multi", n, i, o.Op)
						}
					}
				case proto.OpSetData:
					if _, _, _ = d.NullString(), d.Buffer(), d.Int(); d.Err() != nil {
						t.Errorf("sequence %d step %d has a setData that cannot be decoded", n, i)
					}
				case proto.OpDelete:
					if _, _ = d.NullString(), d.Int(); d.Err() != nil {
						t.Errorf("sequence %d step %d has a delete that cannot be decoded", n, i)
					}
				case proto.OpGetData:
					if _, _ = d.NullString(), d.Bool(); d.Err() != nil {
						damaged++
					}
				}
			}
		}
	}
	if len(used) != members || damaged == 0 {
		t.Errorf("connections by member: %v; damaged reads: %d", used, damaged)
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
	ttl := func(mode int32) []byte {
		return create{path: q("/x"), data: null, acl: openACL, mode: mode, ttl: -1}.body(proto.OpCreateTTL)
	}
	if !kills(proto.OpCreateTTL, ttl(0)) {
		t.Error("a createTTL of mode 0 with ttl -1 is not known to end ZooKeeper")
	}
	if kills(proto.OpCreateTTL, ttl(5)) {
		t.Error("a TTL mode with ttl -1 is answered with -8, and can be asked")
	}
}
