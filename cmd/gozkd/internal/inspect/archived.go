package inspect

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
)

// archived is an archive as a Source: transactions since its first base, and its last state.
type archived struct {
	ctx     context.Context
	archive *archive.Archive
	gaps    []string
}

func openArchive(ctx context.Context, url, ensemble string, getenv func(string) string) (Source, error) {
	s, err := store.Open(url, getenv)
	if err != nil {
		return nil, err
	}
	a, err := archive.Open(ctx, s, ensemble)
	if err != nil {
		return nil, err
	}
	return &archived{ctx: ctx, archive: a}, nil
}

// Notes implements Source.
func (a *archived) Notes() []string { return a.gaps }

// Transactions implements Source.
func (a *archived) Transactions(f func(*Txn) bool) error {
	stopped := false
	last := uint64(0) // of the entries that were handed out
	for _, span := range a.archive.Spans() {
		if last > 0 && span.First > last {
			a.gaps = append(a.gaps, fmt.Sprintf("%v: the entries %d to %d are not in the archive", a.archive, last+1, span.First))
		}
		// Parts overlap if a base is within an object of another writer, or of a merge.
		emit := func(t *Txn) bool {
			if t.Index > last {
				stopped = !f(t)
			}
			return !stopped
		}
		if _, err := a.replay(span, emit); err != nil || stopped {
			return err
		}
		last = max(last, span.Last)
	}
	return nil
}

// replay applies the entries of a span to its base, hands them to f until f returns false, and
// returns the state. f may be nil.
func (a *archived) replay(span archive.Span, f func(*Txn) bool) (_ *machine, err error) {
	dir, err := os.MkdirTemp("", "gozkd-inspect-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "checkpoint.db")
	if err := a.archive.Download(a.ctx, span, file); err != nil {
		return nil, err
	}
	m := &machine{}
	m.handOut(f)
	var entries iter.Seq2[consensus.LogEntry, error] = func(yield func(consensus.LogEntry, error) bool) {
		for e, err := range a.archive.Entries(a.ctx, span, time.Time{}) {
			if m.term = e.Term; !yield(e, err) || f != nil && m.Applied == nil {
				return
			}
		}
	}
	if _, err := consensus.ReplayLog(file, entries, m); err != nil {
		return nil, fmt.Errorf("%v: %w", a.archive, err)
	}
	return m, nil
}

// State implements Source: the state at the end of the archive.
func (a *archived) State() (*datatree.Tree, error) {
	span, err := a.archive.At(archive.Moment{})
	if err != nil {
		return nil, err
	}
	m, err := a.replay(span, nil)
	if err != nil {
		return nil, err
	}
	return m.Tree, nil
}
