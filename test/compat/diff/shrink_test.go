package main

import (
	"testing"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/test/compat/diff/exchange"
	"github.com/gozkd/gozkd/test/compat/diff/generate"
)

// A sequence that fails because of two requests shrinks to these two.
func TestShrink(t *testing.T) {
	is := func(s *exchange.Sequence, op proto.OpCode) (n int) {
		for _, step := range s.Steps {
			for _, r := range step.Send {
				if r.Op == op {
					n++
				}
			}
		}
		return n
	}
	fails := func(s *exchange.Sequence) bool { return is(s, proto.OpSetWatches) > 0 && is(s, proto.OpMulti) > 0 }
	shrunk := 0
	for n := range uint64(200) {
		s := generate.Sequence(1, n)
		if !fails(s) {
			continue
		}
		small := shrink(s, fails)
		if !fails(small) || small.Requests() != 2 || len(small.Steps) > 2 {
			t.Errorf("sequence %d: %d requests in %d steps are left of %d", n, small.Requests(), len(small.Steps), len(s.Steps))
		}
		for i, step := range small.Steps {
			for _, r := range step.Send {
				if r.ZxidOf != nil && (*r.ZxidOf < 0 || *r.ZxidOf > i) {
					t.Errorf("sequence %d: step %d refers to step %d", n, i, *r.ZxidOf)
				}
			}
		}
		shrunk++
	}
	if shrunk < 20 {
		t.Errorf("only %d sequences had both requests", shrunk)
	}
}
