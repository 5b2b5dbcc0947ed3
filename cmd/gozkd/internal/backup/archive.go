package backup

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/replica"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/history"
)

// moment names a state: of a backup, of a data directory, or of an archive at some time.
type moment struct {
	url, logDir, ensemble string
	at                    cli.Moment // zero: the last
}

// register adds the flags that name a state.
func (m *moment) register(flags *flag.FlagSet) {
	flags.StringVar(&m.url, "from", "", "")
	flags.StringVar(&m.logDir, "log-dir", "", "")
	cli.Alias(flags, "from-log-dir", "log-dir")
	flags.Var(&m.at, "at", "")
	flags.StringVar(&m.ensemble, "ensemble-id", "", "")
}

// LastState returns the last state of an archive, before a gap if nothing after it can be restored.
// Beside an error it returns the state before the damage, if there is one.
func LastState(ctx context.Context, a *archive.Archive) (*datatree.Tree, error) {
	s, _, err := stateAt(ctx, a, history.Moment{}, math.MaxInt64)
	return s.tree, err
}

func restoreMoment(ctx context.Context, a *archive.Archive, m history.Moment) (*source, error) {
	s, span, err := stateAt(ctx, a, m, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	if err := s.tree.Check(); err != nil {
		return nil, fmt.Errorf("%v: %w", a, err)
	}
	if m == (history.Moment{}) && a.End() > span.Last {
		return nil, fmt.Errorf("%w: it has a gap after entry %d, and no complete base precedes its entries up to %d\n"+
			"--at %v takes the state before the gap", history.ErrNotCovered, span.Last, a.End(), s.tree.LastZxid())
	}
	return s, nil
}

// stateAt returns the state of a moment, and the span that it is in. Beside an error, the source
// has the state that was reached, nil if there is none. maxBase is as for replay.
func stateAt(ctx context.Context, a *archive.Archive, m history.Moment, maxBase int64) (*source, archive.Span, error) {
	s := &source{path: a.String()}
	span, err := a.At(m)
	if err != nil {
		return s, span, err
	}
	r := &replica.Replica{Until: m.Zxid}
	s.held, err = replay(ctx, a, &span, r, m.Time, maxBase)
	if s.tree = r.Tree; err != nil {
		return s, span, err
	}
	if z := r.Tree.LastZxid(); z < m.Zxid && !r.Reached() {
		err = fmt.Errorf("%w: the part of it that begins before zxid %v ends with %v", history.ErrNotCovered, m.Zxid, z)
	}
	return s, span, err
}

// replay is like Archive.Replay, up to r.Until or, if that is missing, a time. If the base is
// damaged, replay begins with an earlier one and sets span. maxBase bounds the base, and how much
// the state grows after it.
func replay(
	ctx context.Context, a *archive.Archive, span *archive.Span, r *replica.Replica, until time.Time, maxBase int64,
) (consensus.SavedState, error) {
	if size := span.BaseBytes(); size > maxBase {
		return consensus.SavedState{}, fmt.Errorf("%w: the checkpoint %s has %d bytes; run gozkd history or gozkd "+
			"inspect with the URL of the archive", history.ErrTooLarge, span.Base, size)
	}
	begin, grown := int64(-1), int64(0)
	held, err := a.Replay(ctx, *span, r, func(consensus.LogEntry) bool {
		size := r.Tree.ApproximateDataSize()
		if begin < 0 {
			begin = size
		}
		grown = max(grown, size-begin)
		return r.Reached() || grown > maxBase || ctx.Err() != nil
	}, until)
	if older, ok := a.Earlier(*span); ok && r.Tree == nil && errors.Is(err, archive.ErrCorrupt) { // the base is damaged
		*span = older
		return replay(ctx, a, span, r, until, maxBase)
	}
	if err == nil && grown > maxBase {
		err = fmt.Errorf("%w: the state grows by more than %d bytes after the checkpoint %s; run gozkd history with "+
			"the URL of the archive", history.ErrTooLarge, maxBase, span.Base)
	}
	return held, errors.Join(err, ctx.Err())
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
