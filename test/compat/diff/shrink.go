package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/diff/exchange"
)

// maxShrinks bounds how many smaller sequences are tried per finding.
const maxShrinks = 400

// shrinkAndSave looks for a smaller sequence with the same kind of mismatch, saves it and prints
// it.
func (d *duel) shrinkAndSave(ctx context.Context, s *exchange.Sequence, m *exchange.Mismatch) {
	want := m.Signature()
	d.restart(ctx) // without the effects of earlier sequences
	tries := 0
	small := shrink(s, func(c *exchange.Sequence) bool {
		if tries++; tries > maxShrinks {
			return false
		}
		a, b := d.play(ctx, c)
		got := exchange.Compare(a, b, exchange.Differences(), make(map[string]int))
		if got == nil || got.Signature() != want {
			return false
		}
		m = got
		return true
	})
	small.Name = s.Name + ": " + want
	must.Do(os.MkdirAll(d.regress, 0o755))
	file := filepath.Join(d.regress, fileName(s.Name+"-"+want)+".txt")
	must.Do(os.WriteFile(file, []byte(small.String()), 0o644))
	fmt.Fprintf(d.out, "  %d steps left of %d after %d tries, saved as %s\n  %v\na, then b:\n", len(small.Steps), len(s.Steps), tries, file, m)
	a, b := d.play(ctx, small)
	must.Do(exchange.WriteText(d.out, []*exchange.Transcript{a, b}))
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9]+`)

func fileName(s string) string { return strings.Trim(unfit.ReplaceAllString(s, "-"), "-") }

// shrink returns the smallest sequence found by leaving out steps and requests for which fails
// still holds. Longer runs are left out first.
func shrink(s *exchange.Sequence, fails func(*exchange.Sequence) bool) *exchange.Sequence {
	for n := max(len(s.Steps)/2, 1); n > 0; n /= 2 {
		for at := len(s.Steps) - n; at >= 0; at-- {
			if at+n > len(s.Steps) {
				continue
			}
			if c := withoutSteps(s, at, n); fails(c) {
				s = c
			}
		}
	}
	for i := len(s.Steps) - 1; i >= 0; i-- {
		for k := len(s.Steps[i].Send) - 1; k >= 0 && len(s.Steps[i].Send) > 1; k-- {
			if c := withoutRequest(s, i, k); fails(c) {
				s = c
			}
		}
	}
	return s
}

// withoutSteps returns s without n steps from at. Requests that refer to a step keep it, or refer
// to the previous.
func withoutSteps(s *exchange.Sequence, at, n int) *exchange.Sequence {
	c := &exchange.Sequence{Name: s.Name, Steps: slices.Delete(slices.Clone(s.Steps), at, at+n)}
	for i := range c.Steps {
		send := slices.Clone(c.Steps[i].Send)
		for k := range send {
			if of := send[k].ZxidOf; of != nil && *of >= at {
				moved := max(at-1, *of-n, 0)
				send[k].ZxidOf = &moved
			}
		}
		c.Steps[i].Send = send
	}
	return c
}

func withoutRequest(s *exchange.Sequence, step, request int) *exchange.Sequence {
	c := &exchange.Sequence{Name: s.Name, Steps: slices.Clone(s.Steps)}
	c.Steps[step].Send = slices.Delete(slices.Clone(s.Steps[step].Send), request, request+1)
	return c
}
