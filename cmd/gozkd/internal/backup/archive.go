package backup

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/replica"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/proto"
)

// moment names a state in an archive.
type moment struct {
	url, ensemble string
	at            string // empty: the last
}

// openArchive lists the archive at a URL.
func openArchive(ctx context.Context, url, ensemble string, getenv func(string) string) (*archive.Archive, error) {
	s, err := store.Open(url, getenv)
	if err != nil {
		return nil, err
	}
	return archive.Open(ctx, s, ensemble)
}

// readArchive restores a moment from an archive, in a temporary folder.
func readArchive(ctx context.Context, from moment, getenv func(string) string) (*source, error) {
	var m archive.Moment
	var err error
	if from.at != "" {
		if m, err = archive.ParseMoment(from.at); err != nil {
			return nil, err
		}
	}
	a, err := openArchive(ctx, from.url, from.ensemble, getenv)
	if err != nil {
		return nil, err
	}
	return restoreMoment(ctx, a, m)
}

// restoreMoment returns the state of a moment.
func restoreMoment(ctx context.Context, a *archive.Archive, m archive.Moment) (*source, error) {
	span, err := a.At(m)
	if err != nil {
		return nil, err
	}
	r := &replica.Replica{Until: proto.Zxid(m.Zxid)}
	held, err := replay(ctx, a, span, r, func(e consensus.LogEntry) bool { return r.Reached() }, m.Time)
	if err != nil {
		return nil, err
	}
	if err := r.Tree.Check(); err != nil {
		return nil, fmt.Errorf("%v: %w", a, err)
	}
	if z := int64(r.Tree.LastZxid()); z < m.Zxid && !r.Reached() {
		return nil, fmt.Errorf("%w: the part of it that begins before zxid %#x ends with %#x", archive.ErrNotCovered, m.Zxid, z)
	}
	s := &source{path: a.String(), held: held, tree: r.Tree}
	if m == (archive.Moment{}) && a.End() > span.Last {
		s.lost = fmt.Sprintf("the archive has a gap after entry %d: its entries up to %d, which no complete base precedes, are not in this state", span.Last, a.End())
	}
	return s, nil
}

// replay restores a state machine from the base of a span, and applies the entries up to a time. It
// calls done after each entry, and ends if done returns true.
func replay(
	ctx context.Context, a *archive.Archive, span archive.Span, sm consensus.StateMachine, done func(consensus.LogEntry) bool, until time.Time,
) (held consensus.SavedState, err error) {
	dir, err := os.MkdirTemp("", "gozkd-archive-")
	if err != nil {
		return held, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "checkpoint.db")
	if err := a.Download(ctx, span, file); err != nil {
		return held, err
	}
	var entries iter.Seq2[consensus.LogEntry, error] = func(yield func(consensus.LogEntry, error) bool) {
		for e, err := range a.Entries(ctx, span, until) {
			if !yield(e, err) || err == nil && done(e) {
				return
			}
		}
	}
	if held, err = consensus.ReplayLog(file, entries, sm); err != nil {
		err = fmt.Errorf("%v: %w", a, err)
	}
	return held, err
}

const verifyUsage = `usage: gozkd verify [--ensemble ID] URL

Checks an archive: reads every object, replays each unbroken part of the log from its first base, and
compares the state with every later base. Nothing is changed. Shows which moments can be restored.

URL is the place that gozkd.archive.url names: file:///DIRECTORY or s3://BUCKET/PREFIX

flags:
  --ensemble ID  the ensemble, if there are objects of several
`

// Verify runs `gozkd verify`.
func Verify(ctx context.Context, args []string, env cli.Env) int {
	c := &command{cli.Command{Env: env, Name: "verify", Usage: verifyUsage}}
	flags := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	ensemble := flags.String("ensemble", "", "")
	words, status, done := c.Parse(flags, args)
	switch {
	case done:
		return status
	case len(words) != 1:
		return c.Misused(errors.New("name one URL"))
	}
	a, err := openArchive(ctx, words[0], *ensemble, env.Getenv)
	if err != nil {
		return c.Fail(err)
	}
	c.Line("archive", "%v", a)
	spans := a.Spans()
	if len(spans) == 0 {
		return c.Fail(errors.New("there is no complete base yet: no moment can be restored"))
	}
	for i, span := range spans {
		if i > 0 {
			c.Line("gap", "entries %d to %d are missing", spans[i-1].Last+1, span.First)
		}
		if err := c.verify(ctx, a, span); err != nil {
			status = c.Fail(err)
		}
	}
	if last := spans[len(spans)-1].Last; a.End() > last {
		c.Line("gap", "no complete base is before entries up to %d: no moment after entry %d can be restored", a.End(), last)
	}
	for _, name := range a.Strange() {
		c.Line("unknown", "%s: no object of an archive", printable.Text(name))
	}
	return status
}

// verify checks an unbroken part of an archive.
func (c *command) verify(ctx context.Context, a *archive.Archive, span archive.Span) error {
	want, err := statesOf(ctx, a, span)
	if err != nil {
		return err
	}
	r, wrong, compared := &replica.Replica{}, error(nil), 0
	_, err = replay(ctx, a, span, r, func(e consensus.LogEntry) bool {
		w, ok := want[e.Index]
		if ok && wrong == nil {
			compared++
			wrong = w.compare(e.Index, r)
		}
		return false
	}, time.Time{})
	if err != nil {
		return err
	}
	if wrong == nil {
		wrong = r.Tree.Check()
	}
	if wrong != nil {
		return wrong
	}
	c.Line("moments", "%s to %s, zxid %#x to %v", shownTime(span.Begin), shownTime(span.End), span.FirstZxid, r.Tree.LastZxid())
	bases := "1 base"
	if n := span.NumBases(); n > 1 {
		bases = fmt.Sprintf("%d bases, all equal to the state that the log gives", n)
	}
	if compared != span.NumBases()-1 {
		return fmt.Errorf("%d of %d bases could not be compared", span.NumBases()-1-compared, span.NumBases()-1)
	}
	c.Line("entries", "%d to %d in %d objects, %s; %s", span.First, span.Last, span.Objects, inBytes(span.Bytes), bases)
	c.Line("digest", "%#016x after the last entry", r.Tree.Digest())
	return nil
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
func statesOf(ctx context.Context, a *archive.Archive, span archive.Span) (states map[uint64]digestAt, err error) {
	states = make(map[uint64]digestAt)
	dir, err := os.MkdirTemp("", "gozkd-archive-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for index, download := range a.Bases(span) {
		file := filepath.Join(dir, fmt.Sprint(index, ".db"))
		if err := download(ctx, file); err != nil {
			return nil, err
		}
		r := &replica.Replica{}
		if _, err := consensus.ReadCheckpoint(file, r); err != nil {
			return nil, fmt.Errorf("the base of entry %d: %w", index, err)
		}
		states[index] = digestAt{r.Tree.LastZxid(), r.Tree.Digest()}
		if err := os.Remove(file); err != nil {
			return nil, err
		}
	}
	return states, nil
}

func shownTime(t time.Time) string {
	if t.IsZero() {
		return "the first write"
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// withURL turns the URL of an archive among the words of a command line into a --from flag.
func withURL(args []string) []string {
	for i, a := range args {
		if store.IsURL(a) && (i == 0 || !strings.HasPrefix(args[i-1], "-") || strings.Contains(args[i-1], "=")) {
			return append(append(append([]string{}, args[:i]...), "--from="+a), args[i+1:]...)
		}
	}
	return args
}
