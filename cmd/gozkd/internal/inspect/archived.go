package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/backup"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/replica"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
)

// archived is an archive as a Source: transactions since its first base, and its last state.
type archived struct {
	ctx     context.Context
	archive *archive.Archive
	gaps    []string
}

// Notes implements Source.
func (a *archived) Notes() []string { return a.gaps }

// Transactions implements Source.
func (a *archived) Transactions(f func(*replica.Txn) bool) error {
	last := uint64(0) // of the entries that were handed out
	for _, span := range a.archive.Spans() {
		if last > 0 && span.First > last {
			a.gaps = append(a.gaps, fmt.Sprintf("%v: the entries %d to %d are not in the archive", a.archive, last+1, span.First))
		}
		r, stopped := &replica.Replica{}, false
		r.HandOut(func(t *replica.Txn) bool {
			// Parts overlap if a base is within an object of another writer, or of a merge.
			stopped = t.Index > last && !f(t)
			return !stopped
		})
		_, err := a.archive.Replay(a.ctx, span, r, func(consensus.LogEntry) bool { return stopped }, time.Time{})
		if err != nil || stopped {
			return err
		}
		last = max(last, span.Last)
	}
	return nil
}

// State implements Source: the state at the end of the archive.
func (a *archived) State() (*datatree.Tree, error) { return backup.LastState(a.ctx, a.archive) }
