package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/history"
	"github.com/gozkd/gozkd/proto"
)

// Archive reads what the members of an ensemble had archived when it was opened. Objects that were
// merged since are read in their new form.
type Archive struct {
	// Newer are the ids of other ensembles whose last batch is more than a minute later than that
	// of this one, as after a restore.
	Newer    []string
	Ensemble uint64   // the id of the ensemble
	Fences   []string // names of fences, each of a standby that was promoted
	Strange  []string // names that mean nothing to this program

	store   store.Store
	catalog *catalog
}

// OpenURL lists the archive at a URL, as Open.
func OpenURL(ctx context.Context, url, ensemble string, getenv func(string) string) (*Archive, error) {
	s, err := store.Open(url, getenv)
	if err != nil {
		return nil, err
	}
	return Open(ctx, s, ensemble)
}

// Open lists an archive. ensemble is the id of the ensemble in hexadecimal digits; it may be empty
// if there are objects of a single ensemble.
func Open(ctx context.Context, s store.Store, ensemble string) (*Archive, error) {
	ids, all, err := list(ctx, s)
	switch {
	case err != nil:
		return nil, err
	case ensemble == "" && len(ids) > 1:
		return nil, fmt.Errorf("archive: %v has objects of the ensembles %s: choose one with --ensemble-id; after a restore the ensemble has a new number", s, strings.Join(ids, ", "))
	case ensemble != "" && !slices.Contains(ids, ensemble):
		return nil, fmt.Errorf("archive: %v has no objects of ensemble %s, but of %s", s, ensemble, strings.Join(ids, ", "))
	case ensemble == "":
		ensemble = ids[0]
	}
	id, _ := parseEnsemble(ensemble)
	c := newCatalog(id, all)
	a := &Archive{Ensemble: id, Fences: c.fences, Strange: c.strange, store: s, catalog: c}
	for _, other := range ids {
		id, _ := parseEnsemble(other)
		if newCatalog(id, all).past > a.catalog.past+time.Minute.Milliseconds() {
			a.Newer = append(a.Newer, other)
		}
	}
	return a, nil
}

// Ensembles returns the ids of the ensembles that have objects in a store, at least one.
func Ensembles(ctx context.Context, s store.Store) ([]string, error) {
	ids, _, err := list(ctx, s)
	return ids, err
}

// list lists the objects in a store, and the ids of their ensembles.
func list(ctx context.Context, s store.Store) (ids []string, all []store.Object, err error) {
	all, err = s.List(ctx, "", "")
	for _, o := range all {
		if _, ok := parseEnsemble(o.Name); ok && !slices.Contains(ids, o.Name[:16]) {
			ids = append(ids, o.Name[:16])
		}
	}
	if err == nil && len(ids) == 0 {
		err = fmt.Errorf("archive: there are no objects of an archive in %v: "+
			"an ensemble with this gozkd.archive.url begins one within seconds of its start", s)
	}
	return ids, all, err
}

// String names the archive.
func (a *Archive) String() string {
	return fmt.Sprintf("%v, ensemble %016x", a.store, a.catalog.ensemble)
}

// Span is an unbroken part of the history, any moment of which can be restored.
type Span struct {
	Base       string // name of the base that it begins with
	First      uint64 // index of the last entry in the base
	Last       uint64 // index of the last entry
	FirstZxid  int64
	Begin, End time.Time // of the last batch of the base, and of the span; zero: there was none
	Objects    int
	Bytes      int64

	base    base
	bases   []base // the later ones in it
	path    []object
	reached map[position]*object
}

// NumBases returns the number of bases in the span.
func (s *Span) NumBases() int { return 1 + len(s.bases) }

// BaseBytes returns the size of the base that a span begins with.
func (s *Span) BaseBytes() int64 { return s.base.size }

// BeginsHistory reports whether the servers began a new chain with the base of a span, given the
// term of the last entry in the base. Otherwise objects led to the base.
func (a *Archive) BeginsHistory(s Span, term uint64) bool {
	return s.base.chain == firstChain(a.catalog.ensemble, s.First, term)
}

// has reports whether a base belongs to the span's history.
func (s *Span) has(b base) bool {
	_, ok := s.reached[b.position]
	return ok
}

// Spans returns the unbroken parts of the history, in order. Between two of them is a gap.
func (a *Archive) Spans() (spans []Span) {
	for _, b := range a.catalog.whole() {
		if k := len(spans) - 1; k >= 0 && spans[k].has(b) {
			s := &spans[k]
			s.bases, s.Objects, s.Bytes = append(s.bases, b), s.Objects+len(b.parts), s.Bytes+b.size
			continue
		}
		spans = append(spans, a.spanFrom(b))
	}
	return spans
}

func (a *Archive) spanFrom(b base) Span {
	s := Span{
		Base: path.Base(b.folder), First: b.index, Last: b.index, FirstZxid: b.zxid, Begin: timeOf(b.ms), End: timeOf(b.ms), Objects: len(b.parts), Bytes: b.size,
		base: b, path: a.catalog.path(b.position),
	}
	s.reached, _ = a.catalog.reach(b.position)
	for _, o := range s.path {
		s.Last, s.Objects, s.Bytes = o.last, s.Objects+1, s.Bytes+o.size
		if t := timeOf(o.ms); t.After(s.End) {
			s.End = t
		}
	}
	return s
}

// At returns the span from the newest base before a moment to its end. Whether a zxid is in it
// shows only the replay; a moment that is not in the archive is an error that wraps
// history.ErrNotCovered. After the last entry of an archive, every moment is the last, and so is
// the zero value.
func (a *Archive) At(m history.Moment) (Span, error) {
	all := a.catalog.whole()
	var s Span      // of the bases before the moment, the one that reaches furthest, and of these the newest
	var after *base // the first base behind the moment
	for i := range all {
		b := &all[i]
		if m.Zxid != 0 && b.zxid > int64(m.Zxid) || !m.Time.IsZero() && timeOf(b.ms).After(m.Time) {
			after = cmp.Or(after, b)
		} else if span := a.spanFrom(*b); s.Base == "" || span.Last >= s.Last {
			s = span
		}
	}
	switch {
	case len(all) == 0:
		return Span{}, fmt.Errorf("%w: %v has no complete base yet", history.ErrNotCovered, a)
	case s.Base == "":
		return Span{}, fmt.Errorf("%w: it begins at %s, zxid %#x",
			history.ErrNotCovered, TimeText(timeOf(all[0].ms)), all[0].zxid)
	case a.End() > s.Last && after == nil && !m.Time.IsZero() && m.Time.After(s.End):
		return Span{}, fmt.Errorf("%w: it has a gap after %s, which no complete base follows; choose that moment or one before", history.ErrNotCovered, TimeText(s.End))
	case after != nil && s.Last < after.index && !m.Time.IsZero() && m.Time.After(s.End):
		return Span{}, fmt.Errorf("%w: it has a gap from %s to %s; choose a moment before or after it", history.ErrNotCovered, TimeText(s.End), TimeText(timeOf(after.ms)))
	}
	return s, nil
}

// Earlier returns a span from an earlier base that has all of s, if there is one. It is for a base
// that is damaged.
func (a *Archive) Earlier(s Span) (older Span, ok bool) {
	older, err := a.At(history.Moment{Zxid: proto.Zxid(s.FirstZxid) - 1})
	return older, err == nil && s.FirstZxid > 1 && older.Last >= s.First
}

// End returns the index of the last entry in the archive. After a gap that no complete base
// follows, it is not in any span.
func (a *Archive) End() uint64 {
	end, _, _ := a.catalog.tail()
	return end.index
}

// TimeText returns the time of a batch in a text for users; zero: there was none before.
func TimeText(t time.Time) string {
	if t.IsZero() {
		return "the first write"
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// Replica is a state machine that is told the term of the entry that it applies next.
type Replica interface {
	consensus.StateMachine
	SetTerm(term uint64)
}

// ReadBase restores r from the base of a span.
func (a *Archive) ReadBase(ctx context.Context, s Span, r Replica) (consensus.SavedState, error) {
	return a.replay(ctx, s, r, func(func(consensus.LogEntry, error) bool) {})
}

// Replay restores r from the base of a span, and applies the entries up to a time; the zero time is
// no limit. It calls done after each entry, and ends if done returns true. After an error r has the
// state before the damage, or none if the base is damaged.
func (a *Archive) Replay(
	ctx context.Context, s Span, r Replica, done func(consensus.LogEntry) bool, until time.Time,
) (consensus.SavedState, error) {
	return a.replay(ctx, s, r, func(yield func(consensus.LogEntry, error) bool) {
		for e, err := range a.EntriesAfter(ctx, s, s.First) {
			if err == nil && !until.IsZero() && e.Time.After(until) {
				return
			}
			r.SetTerm(e.Term)
			if !yield(e, err) || err == nil && done(e) {
				return
			}
		}
	})
}

// replay downloads the base of a span to a temporary folder, and applies entries to it.
func (a *Archive) replay(
	ctx context.Context, s Span, r Replica, entries iter.Seq2[consensus.LogEntry, error],
) (held consensus.SavedState, err error) {
	dir, err := os.MkdirTemp("", "gozkd-archive-")
	if err != nil {
		return held, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "checkpoint.db")
	if err := a.download(ctx, s.base, file); err != nil {
		return held, err
	}
	if held, err = consensus.ReplayLog(file, entries, r); err != nil {
		err = fmt.Errorf("%v: %w", a, err)
	}
	return held, err
}

// download writes a base to a new file.
func (a *Archive) download(ctx context.Context, from base, file string) (err error) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for i, name := range from.parts {
		b, err := a.store.Get(ctx, name)
		if err != nil {
			return err
		}
		piece, err := partHeader(a.catalog.ensemble, from.baseName, i).decode(b)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if _, err := f.Write(piece); err != nil {
			return err
		}
	}
	return nil
}

// BasesOf returns the spans that begin with the bases of one of Spans, in order, itself first.
func (a *Archive) BasesOf(s Span) []Span {
	spans := []Span{s}
	for _, b := range s.bases {
		spans = append(spans, a.spanFrom(b))
	}
	return spans
}

// EntriesAfter returns the entries of a span after an index. After an error there are no more.
func (a *Archive) EntriesAfter(ctx context.Context, s Span, after uint64) iter.Seq2[consensus.LogEntry, error] {
	return func(yield func(consensus.LogEntry, error) bool) {
		for p, err := range a.Objects(ctx, s, after) {
			if err != nil {
				yield(consensus.LogEntry{}, err)
				return
			}
			for _, e := range p.Entries {
				if e.Index > s.Last || !yield(e, nil) {
					return
				}
			}
		}
	}
}

// merged returns the objects of a span after one of them was merged with others. An object that is
// gone for another reason is an error.
func (a *Archive) merged(ctx context.Context, s Span, gone string, cause error) ([]object, error) {
	c, err := readCatalog(ctx, a.store, a.catalog.ensemble, "")
	if err != nil {
		return nil, err
	}
	path := c.path(s.base.position)
	if endOf(s.base.position, path).index < s.Last || slices.ContainsFunc(path, func(o object) bool { return o.name == gone }) {
		return nil, fmt.Errorf("%w; it was deleted meanwhile: try again", cause)
	}
	return path, nil
}
