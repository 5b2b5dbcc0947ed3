package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/diff/exchange"
	"github.com/gozkd/gozkd/test/compat/server"
)

// maxRoots is how many sequences a pair of servers plays before it is replaced: exchange.Root has
// five digits.
const maxRoots = 90000

// duel plays sequences on two servers.
type duel struct {
	start    *starter
	kinds    [2]server.Kind // ZooKeeper and gozkd
	out      io.Writer
	regress  string // folder of saved sequences
	a, b     *side
	roots    int            // used since the servers were started
	requests int            // played so far, handshakes included
	allowed  map[string]int // how often each difference was met, by id
	findings []finding
}

// finding is a kind of difference that is not allowed.
type finding struct {
	signature string
	count     int
}

// restart replaces both servers by new servers.
func (d *duel) restart(ctx context.Context) {
	must.Do(d.stop())
	d.a = d.start.play(ctx, d.kinds[0])
	d.b = d.start.play(ctx, d.kinds[1])
	d.roots = 0
}

// stop ends both servers.
func (d *duel) stop() error {
	var errs []error
	for _, s := range []**side{&d.a, &d.b} {
		if *s != nil {
			errs = append(errs, (*s).stop())
			*s = nil
		}
	}
	return errors.Join(errs...)
}

// play plays s on both servers at once, under a new root.
func (d *duel) play(ctx context.Context, s *exchange.Sequence) (a, b *exchange.Transcript) {
	if d.roots++; d.roots > maxRoots {
		d.restart(ctx)
	}
	root := exchange.Root(d.roots)
	err := must.Try(func() {
		must.All(
			func() { a = must.Get(d.a.Play(ctx, s, root)) },
			func() { b = must.Get(d.b.Play(ctx, s, root)) })
	})
	if err != nil {
		must.Failf("%s: %w%s", s.Name, err, d.deaths())
	}
	return a, b
}

// deaths lists the servers that have ended, with their logs.
func (d *duel) deaths() string {
	var b strings.Builder
	for _, p := range append(d.a.processes, d.b.processes...) {
		if !p.Running() {
			log := p.Log()
			fmt.Fprintf(&b, "\n%s has ended:\n%s", p.Name(), log[max(0, len(log)-4000):])
		}
	}
	return b.String()
}

// compare plays s and returns the first mismatch that is not allowed.
func (d *duel) compare(ctx context.Context, s *exchange.Sequence) *exchange.Mismatch {
	a, b := d.play(ctx, s)
	d.requests += s.Requests()
	return exchange.Compare(a, b, exchange.Differences(), d.allowed)
}

// replay plays the saved sequences.
func (d *duel) replay(ctx context.Context) {
	files := must.Get(filepath.Glob(filepath.Join(d.regress, "*.txt")))
	for _, f := range files {
		for _, s := range must.Get(exchange.ReadScript(string(must.Get(os.ReadFile(f))))) {
			if m := d.compare(ctx, s); m != nil {
				d.found(filepath.Base(f), m)
				d.restart(ctx)
			}
		}
	}
	fmt.Fprintf(d.out, "%d saved sequences played\n", len(files))
}

// mostFindings is the number of kinds of difference after which generated gives up.
const mostFindings = 20

// generated plays sequences until ops requests, or mostFindings.
func (d *duel) generated(ctx context.Context, seed uint64, ops int) {
	told, before := time.Now(), d.requests
	for n := uint64(0); d.requests-before < ops && len(d.findings) < mostFindings; n++ {
		s := d.start.sequence(seed, n)
		if m := d.compare(ctx, s); m != nil {
			if d.found(s.Name, m) {
				d.shrinkAndSave(ctx, s, m)
			}
			d.restart(ctx) // the trees now differ where sequences meet: below / and /zookeeper
		}
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			fmt.Fprintf(d.out, "%d requests, %d sequences, %d findings\n", d.requests-before, n+1, len(d.findings))
		}
	}
}

// found counts a mismatch and reports whether it is the first of its kind.
func (d *duel) found(name string, m *exchange.Mismatch) bool {
	signature := m.Signature()
	for i := range d.findings {
		if d.findings[i].signature == signature {
			d.findings[i].count++
			return false
		}
	}
	d.findings = append(d.findings, finding{signature, 1})
	fmt.Fprintf(d.out, "%s: %v\n", name, m)
	return true
}

// report prints the findings.
func (d *duel) report() {
	fmt.Fprintf(d.out, "\n%d requests; differences on purpose: %v\n", d.requests, d.allowed)
	if len(d.findings) == 0 {
		fmt.Fprintln(d.out, "no other differences")
		return
	}
	fmt.Fprintln(d.out, "\nother differences, with how many sequences showed each first:")
	for _, f := range d.findings {
		fmt.Fprintf(d.out, "  %5d  %s\n", f.count, f.signature)
	}
}
