package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gozkd/gozkd/test/compat/diff/exchange"
	"github.com/gozkd/gozkd/test/compat/diff/generate"
	"github.com/gozkd/gozkd/test/compat/server"
)

// maxRoots is how many sequences a pair of servers plays before it is replaced: exchange.Root has
// five digits.
const maxRoots = 90000

// duel plays sequences on two servers.
type duel struct {
	start        *starter
	nameA, nameB string
	out          io.Writer
	regress      string
	a, b         *server.Process
	roots        int // used since the servers were started
	stats        *stats
	differences  []exchange.Difference
	findings     []finding
}

// finding is a kind of difference that is not allowed.
type finding struct {
	signature string
	count     int
}

// restart replaces both servers by new ones.
func (d *duel) restart(ctx context.Context) error {
	if err := d.stop(); err != nil {
		return err
	}
	var err error
	if d.a, err = d.start.start(ctx, d.nameA); err != nil {
		return err
	}
	if d.b, err = d.start.start(ctx, d.nameB); err != nil {
		return err
	}
	d.roots = 0
	return nil
}

// stop ends both servers.
func (d *duel) stop() error {
	var errs []error
	for _, p := range []**server.Process{&d.a, &d.b} {
		if *p != nil {
			errs = append(errs, (*p).Stop())
			*p = nil
		}
	}
	return errors.Join(errs...)
}

// play plays s on both servers at once, under a new root.
func (d *duel) play(ctx context.Context, s *exchange.Sequence) (a, b *exchange.Transcript, err error) {
	if d.roots++; d.roots > maxRoots {
		if err := d.restart(ctx); err != nil {
			return nil, nil, err
		}
	}
	root := exchange.Root(d.roots)
	type played struct {
		t   *exchange.Transcript
		err error
	}
	other := make(chan played, 1) // one result
	// Ends when the sequence was played or ctx ends; awaited below.
	go func() {
		t, err := exchange.NewPlayer(d.b.Addr()).Play(ctx, s, root)
		other <- played{t, err}
	}()
	a, err = exchange.NewPlayer(d.a.Addr()).Play(ctx, s, root)
	o := <-other
	if err = errors.Join(err, o.err); err != nil {
		return nil, nil, fmt.Errorf("%s: %w%s", s.Name, err, d.deaths())
	}
	return a, o.t, nil
}

// deaths lists the servers that have ended, with their logs.
func (d *duel) deaths() string {
	var b strings.Builder
	for _, p := range []*server.Process{d.a, d.b} {
		select {
		case <-p.Done():
			log := p.Log()
			fmt.Fprintf(&b, "\n%s has ended:\n%s", p.Name(), log[max(0, len(log)-4000):])
		default:
		}
	}
	return b.String()
}

// compare plays s and returns the first mismatch that is not allowed.
func (d *duel) compare(ctx context.Context, s *exchange.Sequence) (*exchange.Mismatch, error) {
	a, b, err := d.play(ctx, s)
	if err != nil {
		return nil, err
	}
	d.stats.add(a)
	return exchange.Compare(a, b, d.differences, d.stats.allowed), nil
}

// replay plays the saved sequences.
func (d *duel) replay(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(d.regress, "*.json"))
	if err != nil {
		return err
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		var s exchange.Sequence
		if err := json.Unmarshal(b, &s); err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
		m, err := d.compare(ctx, &s)
		if err != nil {
			return err
		}
		if m != nil {
			d.found(filepath.Base(f), m)
			if err := d.restart(ctx); err != nil {
				return err
			}
		}
	}
	fmt.Fprintf(d.out, "%d saved sequences played\n", len(files))
	return nil
}

// generated plays sequences until ops requests, or the maximum number of findings.
func (d *duel) generated(ctx context.Context, seed, first uint64, ops, most int) error {
	started, told, before := time.Now(), time.Now(), d.stats.requests
	for n := first; d.stats.requests-before < ops && len(d.findings) < most; n++ {
		s := generate.Sequence(seed, n)
		m, err := d.compare(ctx, s)
		if err != nil {
			return err
		}
		if m != nil {
			if d.found(s.Name, m) {
				if err := d.shrinkAndSave(ctx, s, m); err != nil {
					return err
				}
			}
			// The trees now differ where sequences meet: below / and /zookeeper.
			if err := d.restart(ctx); err != nil {
				return err
			}
		}
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			fmt.Fprintf(d.out, "%d requests, %d sequences, %d findings\n", d.stats.requests-before, n+1-first, len(d.findings))
		}
	}
	played := d.stats.requests - before
	d.stats.perSecond = float64(played) / time.Since(started).Seconds()
	return nil
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
