package backup

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/replica"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/history"
	"github.com/gozkd/gozkd/proto"
)

// moment names a state in an archive.
type moment struct {
	url, ensemble string
	at            cli.Moment // zero: the last
}

// readArchive restores a moment from an archive, in a temporary folder.
func readArchive(ctx context.Context, from moment, getenv func(string) string) (*source, error) {
	a, err := archive.OpenURL(ctx, from.url, from.ensemble, getenv)
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
	reached := func(consensus.LogEntry) bool { return r.Reached() }
	held, err := a.Replay(ctx, span, r, reached, m.Time)
	for r.Tree == nil && errors.Is(err, archive.ErrCorrupt) { // the base is damaged: begin with an earlier one
		older, ok := a.Earlier(span)
		if !ok {
			break
		}
		span = older
		held, err = a.Replay(ctx, span, r, reached, m.Time)
	}
	if err != nil {
		return nil, err
	}
	if err := r.Tree.Check(); err != nil {
		return nil, fmt.Errorf("%v: %w", a, err)
	}
	if z := int64(r.Tree.LastZxid()); z < m.Zxid && !r.Reached() {
		return nil, fmt.Errorf("%w: the part of it that begins before zxid %#x ends with %#x", history.ErrNotCovered, m.Zxid, z)
	}
	if m == (archive.Moment{}) && a.End() > span.Last {
		return nil, fmt.Errorf("%w: it has a gap after entry %d, and no complete base precedes its entries up to %d\n"+
			"--at %v takes the state before the gap", history.ErrNotCovered, span.Last, a.End(), r.Tree.LastZxid())
	}
	return &source{path: a.String(), held: held, tree: r.Tree}, nil
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
