package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/backup"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/replica"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
)

// source is the content of a data file, or of a directory of them. Each function is called at most
// once. An error names the file and the offset of the damage.
type source struct {
	path string // or URL
	// transactions calls f for each transaction of the log before an error, oldest first, until f
	// returns false.
	transactions func(f func(*replica.Txn) bool) error
	// state returns the state; with an error, nil or the state before the damage.
	state func() (*datatree.Tree, error)
	// notes are lines for the user about the content: a torn tail, for example.
	notes []string
}

// format is a format of data files.
type format struct {
	// is reports whether a path holds data of this format. head are the first bytes of a file; info
	// describes the file or directory.
	is func(path string, info os.FileInfo, head []byte) bool
	// open opens a source. logDir is the directory of its log, "" if the user named none.
	open func(path, logDir string) (*source, error)
	// describe: `gozkd inspect` without a flag describes such data as backup.Describe does.
	// Otherwise it prints the transactions of a log, or the znodes.
	describe bool
	// log says that the data holds transactions and no state.
	log bool
}

// formats are asked in this order. The last format takes everything.
var formats = []format{
	{is: begins("gozkdWAL"), open: ofLog(consensus.ReadSegment), log: true},
	{is: isWALDir, open: ofLog(consensus.ReadWAL), log: true},
	{is: begins("ZKLG"), open: openZooKeeperLog, log: true},
	{is: isZooKeeperSnapshot, open: openZooKeeperSnapshot},
	{is: isZooKeeperDir, open: openZooKeeperDir},
	{is: func(_ string, info os.FileInfo, _ []byte) bool { return info.IsDir() }, open: openDir, describe: true},
	{is: func(string, os.FileInfo, []byte) bool { return true }, open: openCheckpoint, describe: true},
}

// begins returns a function that recognizes files by their first bytes.
func begins(magic string) func(string, os.FileInfo, []byte) bool {
	return func(_ string, _ os.FileInfo, head []byte) bool { return strings.HasPrefix(string(head), magic) }
}

// formatOf finds the format of the data at path.
func formatOf(path string) (*format, error) {
	info, err := backup.StatSource(path)
	if err != nil {
		return nil, err
	}
	var head []byte
	if !info.IsDir() {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		head = make([]byte, 32)
		n, err := f.ReadAt(head, 0)
		if errors.Is(err, io.EOF) { // a short file
			err = nil
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		head = head[:n]
	}
	for i := range formats {
		if formats[i].is(path, info, head) {
			return &formats[i], nil
		}
	}
	panic("inspect: no format takes everything")
}

// open opens the source at a path or URL. log says that it holds transactions and no state.
func (o *options) open(ctx context.Context, env cli.Env, path string) (s *source, log bool, err error) {
	if store.IsURL(path) {
		a, err := archive.OpenURL(ctx, path, o.ensemble, env.Getenv)
		return archived(ctx, a), true, err
	}
	f, err := formatOf(path)
	if err != nil {
		return nil, false, err
	}
	s, err = f.open(path, o.logDir)
	return s, f.log, err
}

// archived returns an archive as a source: transactions since its first base, and its last state.
func archived(ctx context.Context, a *archive.Archive) *source {
	s := &source{state: func() (*datatree.Tree, error) { return backup.LastState(ctx, a) }}
	s.transactions = func(f func(*replica.Txn) bool) error {
		last := uint64(0) // of the entries that were handed out
		for _, span := range a.Spans() {
			if last > 0 && span.First > last {
				s.notes = append(s.notes, fmt.Sprintf("%v: the entries %d to %d are not in the archive", a, last+1, span.First))
			}
			r, stopped := &replica.Replica{}, false
			r.HandOut(func(t *replica.Txn) bool {
				// Parts overlap if a base is within an object of another writer, or of a merge.
				stopped = t.Index > last && !f(t)
				return !stopped
			})
			_, err := a.Replay(ctx, span, r, func(consensus.LogEntry) bool { return stopped }, time.Time{})
			if err != nil || stopped {
				return err
			}
			last = max(last, span.Last)
		}
		return nil
	}
	return s
}
