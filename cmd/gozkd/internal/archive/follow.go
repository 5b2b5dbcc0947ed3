package archive

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/history"
)

// Place is where a follower stands: after an entry of a history of an ensemble.
type Place struct {
	Ensemble, Index uint64
	Time            time.Time // of the last batch; zero: there was none

	chain Chain
}

// String returns the place as ParsePlace reads it.
func (p Place) String() string {
	return fmt.Sprintf("%016x %d %v %d", p.Ensemble, p.Index, p.chain, msOf(p.Time))
}

// ParsePlace reads what String has returned.
func ParsePlace(text string) (p Place, err error) {
	var chain []byte
	var ms int64
	_, err = fmt.Sscanf(text, "%x %d %x %d", &p.Ensemble, &p.Index, &chain, &ms)
	if err != nil || len(chain) != len(p.chain) {
		return Place{}, fmt.Errorf("%w: %q is no place in an archive", ErrCorrupt, text)
	}
	p.chain, p.Time = Chain(chain), timeOf(ms)
	return p, nil
}

// EndOf returns the place after the last entry of a span.
func (a *Archive) EndOf(s Span) Place {
	end := endOf(s.base.position, s.path)
	return Place{a.catalog.ensemble, end.index, s.End, end.chain}
}

// ErrCut means that an archive goes on, but not from a place: objects after it are deleted, there
// is a gap, or its history is another.
var ErrCut = errors.New("archive: it does not continue from where the standby is")

// Since lists the objects that continue an archive at a place, and returns their span. It is less
// work than Open and Continue. ok is false if only those can tell what follows.
func Since(ctx context.Context, s store.Store, at Place) (a *Archive, span Span, ok bool, err error) {
	after := logName{first: at.Index, last: at.Index}.in(at.Ensemble)
	listed, err := s.List(ctx, folder(at.Ensemble)+"log/", after)
	if err != nil {
		return nil, Span{}, false, err
	}
	a = &Archive{store: s, catalog: newCatalog(at.Ensemble, listed)}
	span = a.spanFrom(base{baseName: baseName{position: position{at.Index, at.chain}, ms: msOf(at.Time)}})
	return a, span, len(span.path) > 0 || len(listed) == 0, nil
}

// Continue returns a span that passes through a place and ends with the archive. If the archive
// has nothing after the place, the span ends there or before. The error may be ErrCut.
func (a *Archive) Continue(ctx context.Context, at Place) (Span, error) {
	last, err := a.At(history.Moment{})
	if err != nil || last.Last <= at.Index {
		return last, err
	}
	for _, b := range slices.Backward(a.catalog.whole()) {
		if s := a.spanFrom(b); s.First <= at.Index && s.Last == last.Last {
			if passes, err := a.passes(ctx, s, at); err != nil || passes {
				return s, err
			}
		}
	}
	return last, ErrCut
}

// passes reports whether a place is in a span.
func (a *Archive) passes(ctx context.Context, s Span, at Place) (bool, error) {
	if s.First == at.Index {
		return s.base.chain == at.chain, nil
	}
	i := slices.IndexFunc(s.path, func(o object) bool { return o.last >= at.Index })
	o := s.path[i] // there is one, because the place is before the end
	if o.last == at.Index {
		return o.chain == at.chain, nil
	}
	entries, err := readLog(ctx, a.store.Get, a.catalog.ensemble, o)
	chain := o.prev
	for _, e := range entries {
		if e.Index <= at.Index {
			chain = chain.next(e.Index, e.Data)
		}
	}
	return chain == at.chain, err
}

// Objects returns the entries of each object of a span that has some after an index, without those
// before, and the place after the object. After an error there are no more.
func (a *Archive) Objects(ctx context.Context, s Span, after uint64) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		for path := s.path; len(path) > 0 && after < s.Last; {
			o := path[0]
			if path = path[1:]; o.last <= after {
				continue
			}
			entries, err := readLog(ctx, a.store.Get, a.catalog.ensemble, o)
			if errors.Is(err, store.ErrNotFound) {
				if path, err = a.merged(ctx, s, o.name, err); err == nil {
					continue
				}
			}
			if err != nil {
				yield(Piece{}, err)
				return
			}
			p := Piece{entries[after+1-o.first:], Place{a.catalog.ensemble, o.last, timeOf(o.ms), o.chain}}
			if after = o.last; !yield(p, nil) {
				return
			}
		}
	}
}

// Piece is a part of the log.
type Piece struct {
	Entries []consensus.LogEntry
	End     Place // after them
}

// BaseAt returns a span that begins with the base at a place, if there is one.
func (a *Archive) BaseAt(p Place) (s Span, ok bool) {
	for _, b := range a.catalog.whole() {
		if b.position == (position{p.Index, p.chain}) {
			return a.spanFrom(b), true
		}
	}
	return Span{}, false
}
