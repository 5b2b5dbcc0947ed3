package zkdata

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/history"
	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
)

// Options of Load.
type Options struct {
	Until    history.Moment             // ends before the first transaction beyond it; zero: there is no limit
	Progress func(what string, n int64) // called now and then
}

// Loaded describes a state that was read from ZooKeeper's files.
type Loaded struct {
	Tree     *datatree.Tree
	Replay   *datatree.Replay // of Tree
	Snapshot File             // its Path is "" if the logs begin with the first transaction
	// Unfinished are later snapshots that were not written to their end, or that --until excludes.
	Unfinished  []string
	Znodes      int64 // of the snapshot
	Records     int64 // of the log
	Compared    int64 // how often the digest was compared and equal
	Torn        []string
	lastApplied proto.Zxid // of the log; 0: none
	Unknown     int        // sessions that owned ephemerals and were in no table
}

// Load reads the state of a server.
func Load(ctx context.Context, d *Directory, opt Options) (*Loaded, error) {
	if !opt.Until.Time.IsZero() {
		z, err := lastBefore(d, opt.Until.Time)
		if err != nil {
			return nil, err
		}
		opt.Until = history.Moment{Zxid: z}
	}
	l := &loader{ctx: ctx, d: d, opt: opt}
	for i, s := range d.Snapshots {
		if opt.Until.Zxid != 0 && s.Zxid > opt.Until.Zxid {
			continue
		}
		err := l.snapshot(s)
		if err == nil && opt.Until != (history.Moment{}) && !l.exactAt(i, opt.Until.Zxid) {
			err = fmt.Errorf("%w before the transaction of --until", errUnfinished)
		}
		if errors.Is(err, errUnfinished) || isSnappy(s.Path) && errors.Is(err, zkfiles.ErrEnds) {
			l.done.Unfinished = append(l.done.Unfinished, s.Path)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w\nIf the snapshot is damaged, move it away: the previous one and the logs after it give the same state", s.Path, err)
		}
		if err := l.logs(); err != nil {
			z := l.done.lastApplied // reached from this snapshot, or from the previous one
			return nil, wayOut(err, z, l.exactAt(i, z) || i+1 < len(d.Snapshots))
		}
		return l.finish()
	}
	return l.fromEmpty()
}

var errNoSnapshot = errors.New("there is no snapshot to begin with")

// wayOut adds to the error for a damaged log how to import the state before the damage, if the last
// transaction before it can be reached.
func wayOut(err error, last proto.Zxid, reachable bool) error {
	if last == 0 || !reachable || !errors.Is(err, zkfiles.ErrDamaged) {
		return err
	}
	return fmt.Errorf("%w\nThe last transaction before it is %v: gozkd import --until %v takes the state up to there",
		err, last, last)
}

// loader is the state of Load.
type loader struct {
	ctx    context.Context
	d      *Directory
	opt    Options
	replay *datatree.Replay
	digest *zkfiles.SnapshotDigest // of the snapshot; nil: none
	// exact: the tree is the state of one moment, so that its digest counts.
	exact   bool
	digests zkfiles.Digests
	done    Loaded
}

func (l *loader) why() string {
	switch {
	case len(l.d.Snapshots) == 0:
		return ", and the logs do not begin with the first transaction: name the dataDir with version-2/snapshot.*, " +
			"together with its dataLogDir as DATADIR:DATALOGDIR"
	case l.opt.Until != history.Moment{}:
		return fmt.Sprintf(" that was complete at zxid %v: name a later zxid or time", l.opt.Until.Zxid)
	}
	return ": none was written to its end"
}

// tick reports progress and returns an error if the command was interrupted.
func (l *loader) tick(what string, n int64) error {
	if n%4096 != 0 {
		return nil
	}
	if l.opt.Progress != nil {
		l.opt.Progress(what, n)
	}
	return l.ctx.Err()
}

// snapshot begins with the state of a snapshot.
func (l *loader) snapshot(s File) (err error) {
	l.replay, l.digest, l.exact = datatree.NewReplay(datatree.New(datatree.Options{})), nil, false
	l.done.Snapshot, l.done.Znodes = s, 0
	in, err := openSnapshot(s.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	r, err := zkfiles.NewSnapshotReader(in)
	if err != nil {
		return err
	}
	err = l.replay.Load(r, func() error {
		l.done.Znodes++
		return l.tick("znodes", l.done.Znodes)
	})
	if err != nil {
		return err
	}
	if l.digest, err = r.Trailer(); err != nil {
		return err
	}
	l.replay.SetZxid(s.Zxid)
	return l.compareSnapshot()
}

// exactAt reports whether the snapshot at index i has no part of a transaction after until. A
// server applies transactions while it writes a snapshot. The digest names the zxid at which the
// snapshot was complete; without a digest, it was complete before the server began the next one.
func (l *loader) exactAt(i int, until proto.Zxid) bool {
	switch {
	case l.replay.Newest() > until:
		return false
	case l.digest != nil:
		return l.digest.Zxid <= until
	case i == 0:
		return l.d.Snapshots[0].Zxid == 0
	}
	return l.d.Snapshots[i-1].Zxid <= until || l.d.Snapshots[i].Zxid == 0
}

// compareSnapshot compares the tree with the digest in the snapshot, if the tree is at its zxid.
func (l *loader) compareSnapshot() error {
	d, tree := l.digest, l.replay.Tree()
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
	l.done.Compared++
	return nil
}

// logs replays the transactions after the snapshot.
func (l *loader) logs() error {
	logs := l.d.logsFrom(l.replay.Tree().LastZxid() + 1)
	// A server that was killed goes on in another file, which shows that nothing is missing.
	defer func() { l.done.Torn = logs.torn }()
	for r, err := range logs.records() {
		switch until := l.opt.Until.Zxid; {
		case err != nil:
			return err
		case r.Zxid <= l.done.Snapshot.Zxid:
			continue
		case until != 0 && r.Zxid > until:
			return nil
		}
		if err := l.apply(r); err != nil {
			return fmt.Errorf("%s: at byte %d: %w", logs.path, logs.byte, err)
		}
		l.done.lastApplied = r.Zxid
		if r.Zxid == l.opt.Until.Zxid {
			return nil // what comes after it may be damaged
		}
	}
	return nil
}

// apply applies a record and compares the digest.
func (l *loader) apply(r *zkfiles.Record) error {
	last := l.replay.Tree().LastZxid()
	if err := l.replay.Apply(r); err != nil {
		return err
	}
	l.done.Records++
	if err := l.compareRecord(r, zkfiles.Follows(last, r.Zxid)); err != nil {
		return err
	}
	if d := l.digest; d != nil && r.Zxid == d.Zxid {
		if err := l.compareSnapshot(); err != nil {
			return err
		}
	}
	return l.tick("transactions", l.done.Records)
}

// compareRecord compares the digest after a record. While the state is fuzzy, a difference means
// nothing, and equality means that it is not fuzzy any more. A gap in the zxids is an error unless
// the digest proves that nothing is missing.
func (l *loader) compareRecord(r *zkfiles.Record, follows bool) error {
	if d := l.digest; d != nil && r.Zxid > d.Zxid {
		l.exact = true
	}
	known := r.HasDigest && r.DigestVersion == zkfiles.DigestVersion
	switch {
	case known && (l.exact || r.Digest == l.replay.Digest()):
		l.exact = true
		return l.compare(l.digests.OfTree(r, l.replay.Digest()), fmt.Sprintf("the digest after transaction %v", r.Zxid))
	case !follows:
		return fmt.Errorf("%w: transactions are missing before %v: add the missing log file, or start the ZooKeeper server once, "+
			"so that it makes a new snapshot", zkfiles.ErrDamaged, r.Zxid)
	}
	return nil
}

// finish completes the tree and checks it.
func (l *loader) finish() (*Loaded, error) {
	var err error
	if l.opt.Until == (history.Moment{}) {
		// A leader that has written nothing yet shows its clients the beginning of its epoch.
		l.replay.SetZxid(proto.MakeZxid(l.d.epoch, 0))
	}
	if l.done.Unknown, err = l.replay.Finish(); err != nil {
		return nil, fmt.Errorf("%s: %w", l.d.Name, err)
	}
	l.done.Tree, l.done.Replay = l.replay.Tree(), l.replay
	if z := l.done.Tree.LastZxid(); z.Epoch() >= math.MaxInt32-1 {
		return nil, fmt.Errorf("zxid %v leaves no room for further epochs: copy the tree with gozkd cli export and import instead", z)
	}
	return &l.done, nil
}

// lastBefore returns the zxid of the last transaction at or before a time.
func lastBefore(d *Directory, t time.Time) (last proto.Zxid, err error) {
	for r, err := range (&logFiles{files: d.Logs}).records() {
		if err != nil {
			return 0, wayOut(err, last, true) // behind the damage could be more of that time
		}
		if r.TimeMs > t.UnixMilli() {
			break
		}
		last = r.Zxid
	}
	if last == 0 {
		return 0, fmt.Errorf("the logs have no transaction at or before %s", t.UTC().Format(time.RFC3339))
	}
	return last, nil
}

// Newest returns the directory whose server would win an election: that of the highest epoch, and
// among these that with the last transaction. A server without the file currentEpoch has the epoch
// of its last transaction. Source: ZooKeeper QuorumPeer.loadDataBase.
func Newest(directories []*Directory) (*Directory, error) {
	if len(directories) == 1 {
		return directories[0], nil
	}
	var best *Directory
	var most proto.Zxid
	var bestEpoch uint32
	for _, d := range directories {
		z, err := d.lastZxid()
		if err != nil {
			return nil, fmt.Errorf("%w\nLeave %s out", err, d.Name)
		}
		epoch := max(d.epoch, z.Epoch())
		if best == nil || epoch > bestEpoch || epoch == bestEpoch && z > most {
			best, most, bestEpoch = d, z, epoch
		}
	}
	return best, nil
}

// lastZxid returns the zxid of the last transaction of a server.
func (d *Directory) lastZxid() (last proto.Zxid, err error) {
	if len(d.Snapshots) > 0 {
		last = d.Snapshots[0].Zxid
	}
	for _, f := range slices.Backward(d.Logs) {
		found := false
		for r, err := range (&logFiles{files: []File{f}}).records() {
			if err != nil {
				return 0, err
			}
			last, found = max(last, r.Zxid), true
		}
		if found {
			break
		}
	}
	return last, nil
}
