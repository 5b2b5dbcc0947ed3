package backup

import (
	"context"
	"errors"
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
	"github.com/gozkd/gozkd/proto"
)

// moment names a state in an archive.
type moment struct {
	url, ensemble string
	at            cli.Moment // zero: the last
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
	a, err := openArchive(ctx, from.url, from.ensemble, getenv)
	if err != nil {
		return nil, err
	}
	return restoreMoment(ctx, a, archive.Moment(from.at))
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
	if m == (archive.Moment{}) && a.End() > span.Last {
		return nil, fmt.Errorf("%w: it has a gap after entry %d, and no complete base precedes its entries up to %d\n"+
			"--at %v takes the state before the gap", archive.ErrNotCovered, span.Last, a.End(), r.Tree.LastZxid())
	}
	return &source{path: a.String(), held: held, tree: r.Tree}, nil
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

// withURL turns the URL of an archive among the words of a command line into a --from flag.
func withURL(args []string) []string {
	for i, a := range args {
		if store.IsURL(a) && (i == 0 || !strings.HasPrefix(args[i-1], "-") || strings.Contains(args[i-1], "=")) {
			return append(append(append([]string{}, args[:i]...), "--from="+a), args[i+1:]...)
		}
	}
	return args
}
