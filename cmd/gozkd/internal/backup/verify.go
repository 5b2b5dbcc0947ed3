package backup

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/replica"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/proto"
)

const verifyUsage = `usage: gozkd verify [--ensemble-id ID] [--record] [--output FORMAT] URL

Checks an archive: reads every object, replays each unbroken part of the log from its first base, and
compares the state with every later base. Shows which moments can be restored.

URL is the place that gozkd.archive.url names: file:///DIRECTORY or s3://BUCKET/PREFIX

flags:
  --ensemble-id ID  only this ensemble; by default all that have objects there, as after a restore, one
                    after the other
  --record          write the result into the archive, so that the servers show it: metrics, mntr and
                    gozkd top. Without the flag nothing is changed
  --output FORMAT   text, or json (text): an object for each ensemble

exit status: 0 the archive is sound, 1 it is not or could not be read, 2 the command line is wrong
`

// report is the result of a verification. With --json, and in the archive, it is JSON.
type report struct {
	Archive  string       `json:"archive"`
	Begun    time.Time    `json:"begun"`
	Sound    bool         `json:"sound"`
	Parts    []partReport `json:"parts"`
	Gaps     []string     `json:"gaps"`
	Problems []string     `json:"problems"`
	Unknown  []string     `json:"unknown_objects"`
}

// partReport describes an unbroken part of the history. A part with a problem has no digest.
type partReport struct {
	FirstEntry uint64    `json:"first_entry"`
	LastEntry  uint64    `json:"last_entry"`
	From       time.Time `json:"from,omitzero"` // zero: the first write
	To         time.Time `json:"to,omitzero"`
	FirstZxid  string    `json:"first_zxid"`
	LastZxid   string    `json:"last_zxid,omitempty"`
	Objects    int       `json:"objects"`
	Bytes      int64     `json:"bytes"`
	Bases      int       `json:"bases"`
	Digest     string    `json:"digest,omitempty"`
	// Restorable are the moments that can be restored: all of them, unless there is a problem.
	Restorable []moments `json:"restorable"`

	wrongFrom uint64 // index of the first base that differs from the log; 0: none
	replayed  uint64 // index of the last entry that restorable applied
}

// moments are all moments of a time.
type moments struct {
	From      time.Time `json:"from,omitzero"` // zero: the first write
	To        time.Time `json:"to,omitzero"`
	FirstZxid string    `json:"first_zxid"`
	LastZxid  string    `json:"last_zxid"`
}

// Verify runs `gozkd verify`.
func Verify(ctx context.Context, args []string, env cli.Env) int {
	c := &command{cli.Command{Env: env, Name: "verify", Usage: verifyUsage}}
	flags := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	ensemble := flags.String("ensemble-id", "", "")
	record := flags.Bool("record", false, "")
	asJSON := flags.Bool("json", false, "") // the former name of --output json
	cli.OutputFlag(flags, asJSON)
	cli.Alias(flags, "ensemble", "ensemble-id")
	words, err := cli.ParseFlags(flags, args)
	switch {
	case err != nil:
		return c.End(err)
	case len(words) != 1:
		return c.Misused(errors.New("name one URL"))
	}
	s, err := store.Open(words[0], env.Getenv)
	if err != nil {
		return c.Fail(err)
	}
	ids := []string{*ensemble}
	if *ensemble == "" {
		if ids, err = archive.Ensembles(ctx, s); err != nil {
			return c.Fail(err)
		}
	}
	return c.verify(ctx, s, ids, *asJSON, *record)
}

// verify verifies the archive of each ensemble, and returns the exit status.
func (c *command) verify(ctx context.Context, s store.Store, ids []string, asJSON, record bool) (status int) {
	for _, id := range ids {
		r, a, err := verify(ctx, s, id)
		if err != nil {
			return c.Fail(err)
		}
		if asJSON {
			c.PrintJSON(r)
		} else {
			c.print(r)
		}
		if record {
			if err := r.record(ctx, a); err != nil {
				return c.Fail(fmt.Errorf("the result could not be recorded: %w", err))
			}
		}
		if !r.Sound {
			status = cli.Failed
		}
	}
	return status
}

// attempts bounds how often a verification begins anew because the retention deleted an object that
// it read.
const attempts = 3

// verify checks an archive. The error is that there is none, or that ctx ended.
func verify(ctx context.Context, s store.Store, ensemble string) (r *report, a *archive.Archive, err error) {
	for range attempts {
		begun := time.Now()
		if a, err = archive.Open(ctx, s, ensemble); err != nil {
			return nil, nil, err
		}
		r = &report{Archive: a.String(), Begun: begun.UTC(), Parts: []partReport{}, Gaps: []string{}, Problems: []string{}, Unknown: append([]string{}, a.Strange...)}
		err = r.fill(ctx, a)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if !errors.Is(err, store.ErrNotFound) {
			break
		}
	}
	r.Sound = len(r.Problems) == 0
	return r, a, nil
}

func (r *report) problem(err error) { r.Problems = append(r.Problems, err.Error()) }

// fill verifies each part. The error is one of the problems that wraps store.ErrNotFound.
func (r *report) fill(ctx context.Context, a *archive.Archive) (missing error) {
	spans, last := a.Spans(), uint64(0)
	if len(spans) == 0 {
		r.problem(errors.New("there is no complete base yet: no moment can be restored"))
	}
	for i, span := range spans {
		p := partReport{
			FirstEntry: span.First, LastEntry: span.Last, From: span.Begin.UTC(), To: span.End.UTC(),
			FirstZxid: fmt.Sprintf("%#x", span.FirstZxid), Objects: span.Objects, Bytes: span.Bytes, Bases: span.NumBases(),
			Restorable: []moments{},
		}
		err := p.verify(ctx, a, span)
		if err != nil {
			p.restorable(ctx, a, span)
		}
		if err == nil && i > 0 && span.First > last {
			r.Gaps = append(r.Gaps, fmt.Sprintf("entries %d to %d are missing", last+1, span.First))
			err = mayBegin(ctx, a, span)
		}
		if err != nil {
			r.problem(err)
		}
		if errors.Is(err, store.ErrNotFound) {
			missing = err
		}
		r.Parts, last = append(r.Parts, p), max(last, span.Last)
	}
	if end := a.End(); len(spans) > 0 && end > last {
		r.problem(fmt.Errorf("no complete base is before entries up to %d: no moment after entry %d can be restored", end, last))
	}
	return missing
}

// mayBegin returns an error unless the servers began a new history with a base, after a gap that
// they knew of.
func mayBegin(ctx context.Context, a *archive.Archive, span archive.Span) error {
	var base replica.Replica
	held, err := a.ReadBase(ctx, span, &base)
	if err == nil && !a.BeginsHistory(span, held.Term) {
		err = fmt.Errorf("objects with entries before %d are lost: the servers had archived these entries; moments in the gap cannot be restored", span.First+1)
	}
	return err
}

// verify checks an unbroken part of an archive.
func (p *partReport) verify(ctx context.Context, a *archive.Archive, span archive.Span) error {
	want, err := statesOf(ctx, a, span)
	if err != nil {
		return err
	}
	r, wrong, compared := &replica.Replica{}, error(nil), 0
	_, err = a.Replay(ctx, span, r, func(e consensus.LogEntry) bool {
		w, ok := want[e.Index]
		if ok && wrong == nil {
			compared++
			if wrong = w.compare(e.Index, r); wrong != nil {
				p.wrongFrom = e.Index
			}
		}
		return false
	}, time.Time{})
	switch {
	case err != nil:
		return err
	case wrong != nil:
		return wrong
	case compared != span.NumBases()-1:
		return fmt.Errorf("%d of %d bases could not be compared", span.NumBases()-1-compared, span.NumBases()-1)
	}
	if err := r.Tree.Check(); err != nil {
		return err
	}
	p.LastZxid, p.Digest = r.Tree.LastZxid().String(), fmt.Sprintf("%#016x", r.Tree.Digest())
	p.Restorable = []moments{{p.From, p.To, p.FirstZxid, p.LastZxid}}
	return nil
}

// restorable finds the moments of a part with a problem that can be restored: from a base on, all
// up to damage in the log; then from the next base after the damage.
func (p *partReport) restorable(ctx context.Context, a *archive.Archive, span archive.Span) {
	for _, base := range a.BasesOf(span) {
		r, end := &replica.Replica{}, base.Begin
		if base.First <= p.replayed {
			continue
		}
		_, _ = a.Replay(ctx, base, r, func(e consensus.LogEntry) bool { // an error is among the problems
			if p.replayed = e.Index; e.Time.After(end) {
				end = e.Time
			}
			return p.wrongFrom != 0 && e.Index+1 >= p.wrongFrom
		}, time.Time{})
		if r.Tree == nil || r.Tree.Check() != nil {
			continue
		}
		p.Restorable = append(p.Restorable, moments{
			base.Begin.UTC(), end.UTC(), fmt.Sprintf("%#x", base.FirstZxid), r.Tree.LastZxid().String(),
		})
		if p.wrongFrom != 0 {
			return
		}
	}
}

// print prints the report, and its problems as errors.
func (c *command) print(r *report) {
	c.Line("archive", "%s", r.Archive)
	for _, p := range r.Parts {
		for _, m := range p.Restorable {
			c.Line("moments", "%s to %s, zxid %s to %s", archive.TimeText(m.From), archive.TimeText(m.To), m.FirstZxid, m.LastZxid)
		}
		if len(p.Restorable) == 0 {
			c.Line("moments", "none from %s to %s, entries %d to %d", archive.TimeText(p.From), archive.TimeText(p.To), p.FirstEntry, p.LastEntry)
		}
		if p.Digest == "" {
			continue
		}
		bases := "1 base"
		if p.Bases > 1 {
			bases = fmt.Sprintf("%d bases, all equal to the state that the log gives", p.Bases)
		}
		c.Line("entries", "%d to %d in %d objects, %s; %s", p.FirstEntry, p.LastEntry, p.Objects, humanize.IBytes(uint64(p.Bytes)), bases)
		c.Line("digest", "%s after the last entry", p.Digest)
	}
	for _, gap := range r.Gaps {
		c.Line("gap", "%s", gap)
	}
	for _, name := range r.Unknown {
		c.Line("unknown", "%s: no object of an archive", printable.Text(name))
	}
	for _, problem := range r.Problems {
		c.Fail(errors.New(problem))
	}
}

// record writes the report into the archive.
func (r *report) record(ctx context.Context, a *archive.Archive) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return a.Record(ctx, archive.Verification{Begun: r.Begun, Last: a.End(), Sound: r.Sound}, b)
}

// digestAt is the digest of a base.
type digestAt struct {
	zxid   proto.Zxid
	digest uint64
}

func (d digestAt) compare(index uint64, r *replica.Replica) error {
	if d.zxid == r.Tree.LastZxid() && d.digest == r.Tree.Digest() {
		return nil
	}
	return fmt.Errorf("the base of entry %d has zxid %v and digest %#x, but the log gives %v and %#x: the archive is wrong from there on; restore a moment before, and set gozkd.archive.url to another place",
		index, d.zxid, d.digest, r.Tree.LastZxid(), r.Tree.Digest())
}

// statesOf reads the later bases of a span, one after the other.
func statesOf(ctx context.Context, a *archive.Archive, span archive.Span) (map[uint64]digestAt, error) {
	states := make(map[uint64]digestAt)
	for _, base := range a.BasesOf(span)[1:] {
		var r replica.Replica
		if _, err := a.ReadBase(ctx, base, &r); err != nil {
			return nil, fmt.Errorf("the base of entry %d: %w", base.First, err)
		}
		states[base.First] = digestAt{r.Tree.LastZxid(), r.Tree.Digest()}
	}
	return states, nil
}
