package moving

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
)

// limit ends a replay before the first transaction beyond it.
type limit struct {
	zxid   proto.Zxid // 0: none
	timeMs int64      // 0: none
}

func (l limit) none() bool { return l.zxid == 0 && l.timeMs == 0 }

// options of load.
type options struct {
	until    limit
	progress func(what string, n int64) // called now and then
}

// loaded describes a state that was read from ZooKeeper's files.
type loaded struct {
	from     string // the directory
	tree     *datatree.Tree
	snapshot file
	// unfinished are later snapshots that were not written to their end, or that --until excludes.
	unfinished []string
	znodes     int64 // of the snapshot
	records    int64 // of the log
	compared   int64 // how often the digest was compared and equal
	torn       []string
	lastTimeMs int64
	unknown    int // sessions that owned ephemerals and were in no table
}

// load reads the state of a server.
func load(ctx context.Context, d *directory, opt options) (*loaded, error) {
	if opt.until.timeMs != 0 {
		z, err := lastBefore(d, opt.until.timeMs)
		if err != nil {
			return nil, err
		}
		opt.until = limit{zxid: z}
	}
	l := &loader{ctx: ctx, d: d, opt: opt}
	l.done.from = d.name
	for i, s := range d.snapshots {
		if opt.until.zxid != 0 && s.zxid > opt.until.zxid {
			continue
		}
		err := l.snapshot(s)
		if err == nil && !opt.until.none() && !l.exactBefore(i) {
			err = fmt.Errorf("%w before the transaction of --until", errUnfinished)
		}
		if errors.Is(err, errUnfinished) {
			l.done.unfinished = append(l.done.unfinished, s.path)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w\nIf the snapshot is damaged, move it away: the previous one and the logs after it give the same state", s.path, err)
		}
		if err := l.logs(); err != nil {
			return nil, err
		}
		return l.finish()
	}
	return nil, fmt.Errorf("%s: %w%s", d.name, errNoSnapshot, l.why())
}

var errNoSnapshot = errors.New("there is no snapshot to begin with")

// loader is the state of load.
type loader struct {
	ctx     context.Context
	d       *directory
	opt     options
	replay  *datatree.Replay
	trailer zkfiles.Trailer
	// exact: the tree is the state of one moment, so that its digest counts.
	exact bool
	done  loaded
}

func (l *loader) why() string {
	switch {
	case len(l.d.snapshots) == 0:
		return ": ZooKeeper makes one when it starts; name the dataDir with version-2/snapshot.*"
	case !l.opt.until.none():
		return fmt.Sprintf(" that was complete at zxid %v: name a later zxid or time", l.opt.until.zxid)
	}
	return ": none was written to its end"
}

// tick reports progress and returns an error if the command was interrupted.
func (l *loader) tick(what string, n int64) error {
	if n%4096 != 0 {
		return nil
	}
	if l.opt.progress != nil {
		l.opt.progress(what, n)
	}
	return l.ctx.Err()
}

// snapshot begins with the state of a snapshot.
func (l *loader) snapshot(s file) (err error) {
	l.replay, l.trailer, l.exact = datatree.NewReplay(datatree.New(datatree.Options{})), zkfiles.Trailer{}, false
	l.done.snapshot, l.done.znodes = s, 0
	in, err := openSnapshot(s.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	r, err := zkfiles.NewSnapshotReader(in)
	if err != nil {
		return err
	}
	for _, session := range r.Sessions {
		l.replay.Session(session)
	}
	for z, err := range r.Znodes() {
		if err != nil {
			return err
		}
		if err := l.replay.Znode(&z, r.ACLs); err != nil {
			return fmt.Errorf("%w: at byte %d: znode %q: %w", zkfiles.ErrDamaged, r.Offset(), z.Path, err)
		}
		l.done.znodes++
		if err := l.tick("znodes", l.done.znodes); err != nil {
			return err
		}
	}
	if l.trailer, err = r.Trailer(); err != nil {
		return err
	}
	l.replay.SetZxid(s.zxid)
	return l.compareSnapshot()
}

// exactBefore reports whether the snapshot at index i was complete when the transaction of --until was
// applied, so that it has no part of a later one: its digest names when it was complete, and a server
// begins a snapshot only after the previous one.
func (l *loader) exactBefore(i int) bool {
	until := l.opt.until.zxid
	switch {
	case l.replay.Newest() > until:
		return false
	case l.trailer.Digest != nil:
		return l.trailer.Digest.Zxid <= until
	case i == 0:
		return l.d.snapshots[0].zxid == 0
	}
	return l.d.snapshots[i-1].zxid <= until || l.d.snapshots[i].zxid == 0
}

// compareSnapshot compares the tree with the digest in the snapshot, if the tree is at its zxid.
func (l *loader) compareSnapshot() error {
	d, tree := l.trailer.Digest, l.replay.Tree()
	if d == nil || d.Version != zkfiles.DigestVersion || d.Zxid != tree.LastZxid() {
		return nil
	}
	l.exact = true
	return l.compare(d.Value, fmt.Sprintf("the snapshot's digest of zxid %v", d.Zxid))
}

func (l *loader) compare(want uint64, what string) error {
	if got := l.replay.Digest(); got != want {
		return fmt.Errorf("%w: %s is %#x, computed is %#x", zkfiles.ErrDamaged, what, want, got)
	}
	l.done.compared++
	return nil
}

// firstLog returns the index of the first log that may have transactions after the snapshot.
func (l *loader) firstLog() int {
	first := 0
	for i, f := range l.d.logs {
		if f.zxid <= l.replay.Tree().LastZxid()+1 {
			first = i
		}
	}
	return first
}

// logs replays the transactions after the snapshot.
func (l *loader) logs() error {
	logs := l.d.logs[l.firstLog():]
	for _, f := range logs {
		err := readLog(f.path, func(r *zkfiles.Record, at int64) error {
			if r.Zxid <= l.done.snapshot.zxid {
				return nil
			}
			if l.opt.until.zxid != 0 && r.Zxid > l.opt.until.zxid {
				return errStop
			}
			if err := l.apply(r); err != nil {
				return fmt.Errorf("%s: at byte %d: %w", f.path, at, err)
			}
			return nil
		})
		switch {
		case errors.Is(err, errStop):
			return nil
		case errors.Is(err, zkfiles.ErrTorn):
			// A server that was killed goes on in another file, whose first zxid shows that nothing
			// is missing.
			l.done.torn = append(l.done.torn, err.Error())
		case err != nil:
			return err
		}
	}
	return nil
}

// errStop ends the reading of a log without an error.
var errStop = errors.New("stop")

// apply applies a record and compares the digest.
func (l *loader) apply(r *zkfiles.Record) error {
	last := l.replay.Tree().LastZxid()
	if _, err := l.replay.Apply(r); err != nil {
		return err
	}
	l.done.records++
	l.done.lastTimeMs = r.TimeMs
	if err := l.compareRecord(r, follows(last, r.Zxid)); err != nil {
		return err
	}
	if d := l.trailer.Digest; d != nil && r.Zxid == d.Zxid {
		if err := l.compareSnapshot(); err != nil {
			return err
		}
	}
	return l.tick("transactions", l.done.records)
}

// compareRecord compares the digest after a record. While the state is fuzzy, a difference means
// nothing, and equality means that it is not fuzzy any more. A gap in the zxids is an error unless the
// digest proves that nothing is missing.
func (l *loader) compareRecord(r *zkfiles.Record, follows bool) error {
	if d := l.trailer.Digest; d != nil && r.Zxid > d.Zxid {
		l.exact = true
	}
	known := r.HasDigest && r.DigestVersion == zkfiles.DigestVersion
	switch {
	case known && (l.exact || r.Digest == l.replay.Digest()):
		l.exact = true
		return l.compare(r.Digest, fmt.Sprintf("the digest after transaction %v", r.Zxid))
	case !follows:
		return fmt.Errorf("%w: transactions are missing before %v, the one before it is of an earlier zxid: a log file is missing, "+
			"or start the ZooKeeper server once, so that it makes a new snapshot", zkfiles.ErrDamaged, r.Zxid)
	}
	return nil
}

// follows reports whether no transaction lies between two zxids: the counter grows by one, and an
// epoch begins with 1.
func follows(a, b proto.Zxid) bool { return b == a+1 || b.Epoch() > a.Epoch() && b.Counter() == 1 }

// finish completes the tree and checks it.
func (l *loader) finish() (*loaded, error) {
	var err error
	if l.done.unknown, err = l.replay.Finish(); err != nil {
		return nil, fmt.Errorf("%s: %w", l.d.name, err)
	}
	l.done.tree = l.replay.Tree()
	if z := l.done.tree.LastZxid(); z.Epoch() >= math.MaxInt32-1 {
		return nil, fmt.Errorf("zxid %v leaves no room for further epochs: copy the tree with gozkd cli export and import instead", z)
	}
	return &l.done, nil
}

// readLog calls f with each record of a log and its offset, until f returns an error.
func readLog(path string, f func(*zkfiles.Record, int64) error) (err error) {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	r, err := zkfiles.NewLogReader(in)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for {
		record, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := f(record, r.Offset()); err != nil {
			return err
		}
	}
}

// lastBefore returns the zxid of the last transaction at or before a time.
func lastBefore(d *directory, timeMs int64) (last proto.Zxid, err error) {
	for _, f := range d.logs {
		err := readLog(f.path, func(r *zkfiles.Record, _ int64) error {
			if r.TimeMs > timeMs {
				return errStop
			}
			last = r.Zxid
			return nil
		})
		switch {
		case errors.Is(err, errStop) && last != 0:
			return last, nil
		case err != nil && !errors.Is(err, zkfiles.ErrTorn):
			return 0, noStop(err, timeMs)
		}
	}
	if last == 0 {
		return 0, noStop(errStop, timeMs)
	}
	return last, nil
}

func noStop(err error, timeMs int64) error {
	if errors.Is(err, errStop) {
		return fmt.Errorf("the logs have no transaction at or before %s", time.UnixMilli(timeMs).UTC().Format(time.RFC3339))
	}
	return err
}

// newest returns the directory whose server would win an election: that of the highest epoch, and
// among these that with the last transaction.
func newest(directories []*directory) (*directory, error) {
	if len(directories) == 1 {
		return directories[0], nil
	}
	var best *directory
	var most proto.Zxid
	for _, d := range directories {
		z, err := d.lastZxid()
		if err != nil {
			return nil, err
		}
		if best == nil || d.epoch > best.epoch || d.epoch == best.epoch && z > most {
			best, most = d, z
		}
	}
	return best, nil
}

// lastZxid returns the zxid of the last transaction of a server.
func (d *directory) lastZxid() (last proto.Zxid, err error) {
	if len(d.snapshots) > 0 {
		last = d.snapshots[0].zxid
	}
	for i := len(d.logs) - 1; i >= 0; i-- {
		found := false
		err := readLog(d.logs[i].path, func(r *zkfiles.Record, _ int64) error {
			last, found = max(last, r.Zxid), true
			return nil
		})
		if err != nil && !errors.Is(err, zkfiles.ErrTorn) {
			return 0, err
		}
		if found {
			break
		}
	}
	return last, nil
}
