package archive

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/server/facts"
)

// Config configures a Shipper. All fields but Retention are required.
type Config struct {
	Store  store.Store
	Logger hclog.Logger
	// Interval is how long an entry may wait until it is written.
	Interval time.Duration
	// BaseInterval bounds the age of the newest base, BaseBytes the bytes of objects after it.
	BaseInterval time.Duration
	BaseBytes    int64
	// Retention is for how long every moment is kept; 0: for ever.
	Retention time.Duration
}

const (
	// requestTimeout bounds a request to the storage, except an upload.
	requestTimeout = 30 * time.Second
	// captureTimeout bounds the wait for the state, which needs a leader.
	captureTimeout = 5 * time.Second
	// housekeeping is how many intervals are between two runs of compaction and retention, and
	// between two looks for the result of a verification.
	housekeeping = 20
)

// Shipper writes a server's log to an archive, or stands by while another member does.
type Shipper struct {
	cfg Config

	// These are owned by Run.
	source   Source
	ensemble uint64
	pos      position  // after the last entry in the archive, as far as is known
	last     *object   // the object that ends there, unless this shipper wrote it
	lastBase *base     // the base that ends there, if no object does
	ahead    time.Time // since when the archive has been ahead of this leader; zero: it is not
	known    bool      // the archive was listed
	active   bool      // this member writes
	checked  bool      // the history that ends at pos is that of this member
	attempt  string    // name of the last object that was to be written
	seen     []sighting
	base     *baseJob  // the base that is being made
	baseDue  bool      // a base is needed
	baseMade time.Time // by this shipper, the last one
	lacking  time.Time // since when the entry after pos is missing here, and no round failed; zero: it is not
	warned   time.Time // of objects in the future
	rounds   int
	failing  bool // the last round failed, and the log says so
	closed   bool // the log says that there is a fence

	mu      sync.Mutex // guards what other goroutines read
	stats   facts.ArchiveStats
	waiting time.Time // since when an entry waits; zero: none does
}

// maxSightings bounds Shipper.seen: one hour at the default interval.
const maxSightings = 1200

// sighting is when this shipper saw that an index was applied.
type sighting struct {
	index uint64
	at    time.Time
}

// New returns a Shipper.
func New(cfg Config) *Shipper { return &Shipper{cfg: cfg} }

// Stats returns the figures for the metrics.
func (s *Shipper) Stats() facts.ArchiveStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.stats
	if !s.waiting.IsZero() {
		a.Lag = max(time.Since(s.waiting), 0)
	}
	return a
}

func (s *Shipper) count(change func(*facts.ArchiveStats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.stats)
}

// Run archives the log of a server until ctx ends, and then the rest, for at most another interval.
func (s *Shipper) Run(ctx context.Context, source Source) {
	s.source = source
	tick := time.NewTicker(s.cfg.Interval)
	defer tick.Stop()
	s.round(ctx)
	for {
		select {
		case <-tick.C:
			s.round(ctx)
		case <-ctx.Done():
			s.dropBase() // the log goes on behind it
			if s.active {
				last, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Interval)
				s.note(s.ship(last))
				cancel()
			}
			return
		}
	}
}

// round archives new entries, and makes a base and keeps house if that is due. Of errors in a row,
// the first and their end are logged.
func (s *Shipper) round(ctx context.Context) {
	err := s.ship(ctx)
	if err == nil && s.active {
		err = s.makeBase(ctx)
	}
	s.rounds++
	if err == nil && s.active && s.rounds%housekeeping == 0 {
		err = s.keepHouse(ctx)
	}
	if err == nil && s.rounds%housekeeping == 1 {
		err = s.lookForVerification(ctx)
	}
	if ctx.Err() == nil {
		s.note(err)
	}
}

// note logs the result of a round if it differs from the result before.
func (s *Shipper) note(err error) {
	if err != nil {
		s.lacking = time.Time{} // others may have had no turn either
	}
	fenced := errors.Is(err, errFenced)
	switch {
	case fenced && !s.closed: // whatever failed before
		s.cfg.Logger.Error("the archive is closed to this ensemble", "archive", s.cfg.Store.String(), "error", err)
	case err != nil && !s.failing:
		s.cfg.Logger.Error("the archive cannot be written; entries wait in memory until it can", "archive", s.cfg.Store.String(), "error", err)
	case err == nil && s.failing:
		s.cfg.Logger.Info("the archive is written again", "archive", s.cfg.Store.String())
	}
	s.failing, s.closed = err != nil, fenced || s.closed && err != nil
}

// errAhead means that the archive has entries that the ensemble does not have.
var errAhead = errors.New("the archive is ahead of this ensemble, which was brought back to an older state: set gozkd.archive.url to another place")

// ship writes the applied entries that are not archived yet, if it is this member's turn.
func (s *Shipper) ship(ctx context.Context) error {
	p, now := s.source.LogPosition(), time.Now()
	if p.Ensemble == 0 || p.Applied == 0 {
		return nil
	}
	if p.Ensemble != s.ensemble {
		s.ensemble, s.pos, s.last, s.lastBase, s.known, s.active, s.seen = p.Ensemble, position{}, nil, nil, false, false, nil
		s.count(func(a *facts.ArchiveStats) { a.Verified, a.VerifyFailed = time.Time{}, false })
		s.dropBase()
	}
	s.see(p.Applied, now)
	defer s.settle()
	if !s.known || p.Applied > s.pos.index {
		if err := s.follow(ctx); err != nil {
			return err
		}
	}
	if p.Leads && p.Applied < s.pos.index {
		if s.ahead.IsZero() {
			s.ahead = now
		}
		return errAhead
	}
	s.ahead = time.Time{}
	s.settle()
	if len(s.seen) == 0 {
		return nil
	}
	if !s.active && now.Sub(s.seen[0].at) < 2*time.Duration(p.Turn)*s.cfg.Interval {
		return nil
	}
	return s.write(ctx, p)
}

// see notes that an index was applied. While the store fails for long, the last sighting stands for
// all later ones, so that entries are taken for older than they are, never for younger.
func (s *Shipper) see(applied uint64, now time.Time) {
	k := len(s.seen)
	switch {
	case k > 0 && applied <= s.seen[k-1].index:
	case k < maxSightings:
		s.seen = append(s.seen, sighting{applied, now})
	default:
		s.seen[k-1].index = applied
	}
}

// settle forgets the sightings that are in the archive, and lets the server truncate its log.
func (s *Shipper) settle() {
	k := 0
	for k < len(s.seen) && s.seen[k].index <= s.pos.index {
		k++
	}
	s.seen = s.seen[k:]
	waiting := s.ahead
	if waiting.IsZero() && len(s.seen) > 0 {
		waiting = s.seen[0].at
	}
	s.count(func(a *facts.ArchiveStats) { s.waiting, a.Shipper = waiting, s.active })
	keep := s.pos.index // with the last entry, for sameHistory
	if len(s.seen) > 0 && s.Stats().Fenced != "" {
		keep = s.seen[len(s.seen)-1].index // nothing waits for the archive any more
	}
	s.source.KeepLog(keep)
}

// follow looks for objects that another member wrote. If there are any, that member goes on.
func (s *Shipper) follow(ctx context.Context) error {
	after := ""
	if s.known && s.pos.index > 0 {
		// Objects that continue a chain begin after pos. Those of a writer that took the same
		// entries in other pieces may begin earlier, and end later; they are found with the next
		// one is. Fences are listed after the objects.
		after = logName{first: s.pos.index, last: s.pos.index}.in(s.ensemble)
	}
	c, err := s.catalog(ctx, after)
	if err != nil {
		return err
	}
	s.known = true
	if err := s.checkFence(c); err != nil {
		return err
	}
	if tail, last, lastBase := c.tail(); tail.index > s.pos.index {
		if last != nil && last.name == s.attempt { // written in spite of the error
			s.pos, s.last, s.lastBase, s.checked = tail, nil, nil, true
			return nil
		}
		s.pos, s.last, s.lastBase, s.active, s.checked, s.lacking = tail, last, lastBase, false, false, time.Time{}
		s.dropBase()
	}
	return nil
}

// write writes entries up to the last applied entry.
func (s *Shipper) write(ctx context.Context, p facts.LogPosition) error {
	gap := s.pos.index == 0
	if !gap {
		same, other, err := s.sameHistory(ctx)
		if err != nil || !same && !other {
			return err // the next round asks again
		}
		gap = other
	}
	// A base begins at the end of an object, and its upload before the next one is written.
	for !gap && s.pos.index < p.Applied && s.base.boundary() != s.pos.index {
		entries, err := s.source.ReplicatedLog(s.pos.index+1, pieceBytes)
		if gap = errors.Is(err, consensus.ErrCompacted); gap {
			break
		}
		if err != nil || len(entries) == 0 {
			return err
		}
		if at := s.base.boundary(); at > s.pos.index && at < entries[len(entries)-1].Index {
			entries = entries[:at-s.pos.index]
		}
		n, b := encodeLog(s.ensemble, s.pos, entries)
		s.attempt = n.in(s.ensemble)
		if err := s.put(ctx, s.attempt, b); err != nil {
			return err
		}
		s.baseDue = s.baseDue || !s.active // the member before may have died while it made one
		s.pos, s.last, s.lastBase, s.active, s.checked = n.after(), nil, nil, true, true
	}
	if !gap {
		s.lacking = time.Time{}
		return nil
	}
	if s.lacking.IsZero() {
		s.lacking = time.Now()
	}
	// Another member may have the entry, and had no turn yet, or waits for an earlier request.
	patience := requestTimeout + 2*time.Duration(p.Members+p.Turn)*s.cfg.Interval
	if s.pos.index > 0 && p.Members > 1 && time.Since(s.lacking) < patience {
		return nil
	}
	return s.begin(ctx)
}

// sameHistory reports whether the history that ends at Shipper.pos is that of this member, as far
// as is known: other means that this member does not have the entry before pos any more. It reports
// neither while a checkpoint is installed, when this member has no log.
//
// It compares the last entries as a whole, and not only their terms, which an ensemble that was
// brought back counts again. If they differ, the error is errAhead.
func (s *Shipper) sameHistory(ctx context.Context) (same, other bool, err error) {
	if s.checked {
		return true, false, nil
	}
	endsWith, err := s.lastEntry(ctx)
	if err != nil {
		return false, false, err
	}
	own, err := s.source.ReplicatedLog(s.pos.index, 1)
	switch {
	case errors.Is(err, consensus.ErrCompacted):
		return false, true, nil
	case err != nil || len(own) == 0:
		return false, false, err
	case !endsWith(own[0]):
		return false, false, errAhead
	}
	s.checked = true
	return true, false, nil
}

// lastEntry returns a check whether an entry of the index in Shipper.pos is the archive's last.
func (s *Shipper) lastEntry(ctx context.Context) (is func(consensus.LogEntry) bool, err error) {
	if s.last == nil {
		// The objects before the base are deleted, or not listed yet, so its chain cannot be
		// compared. But an ensemble that was brought back has passed the time of its last batch.
		return func(e consensus.LogEntry) bool { return msOf(e.Time) <= s.lastBase.ms }, nil
	}
	entries, err := readLog(ctx, s.get, s.ensemble, *s.last)
	if errors.Is(err, store.ErrNotFound) {
		// It was merged or deleted since it was listed. The next round lists what is there now.
		s.pos, s.last, s.known = position{}, nil, false
	}
	if err != nil {
		return nil, err
	}
	last := entries[len(entries)-1]
	return func(e consensus.LogEntry) bool { return e.Term == last.Term && bytes.Equal(e.Data, last.Data) }, nil
}

// begin begins a new chain with a base.
func (s *Shipper) begin(ctx context.Context) error {
	c, err := s.capture(ctx)
	if err != nil {
		return err
	}
	if s.pos.index > 0 {
		s.count(func(a *facts.ArchiveStats) { a.Gaps++ })
		s.cfg.Logger.Warn("entries of the log are missing in the archive, and no member has them any more: moments between are lost; a new base follows",
			"from", s.pos.index+1, "to", c.Index)
	}
	s.base.stop()
	s.pos, s.last, s.lastBase = position{c.Index, firstChain(s.ensemble, c.Index, c.Term)}, nil, nil
	s.active, s.checked = true, true
	s.base = &baseJob{capture: c}
	return nil
}

func (s *Shipper) capture(ctx context.Context) (*facts.Capture, error) {
	ctx, cancel := context.WithTimeout(ctx, captureTimeout)
	defer cancel()
	return s.source.Capture(ctx)
}

// put, get and catalog ask the store, count, and have a time limit except for put: how long an
// upload takes depends on its bytes.
func (s *Shipper) put(ctx context.Context, name string, b []byte) error {
	if err := s.cfg.Store.Put(ctx, name, b); err != nil {
		s.count(func(a *facts.ArchiveStats) { a.Errors++ })
		return err
	}
	s.count(func(a *facts.ArchiveStats) { a.Objects, a.Bytes = a.Objects+1, a.Bytes+int64(len(b)) })
	return nil
}

func (s *Shipper) get(ctx context.Context, name string) (b []byte, err error) {
	err = s.request(ctx, func(ctx context.Context) error { b, err = s.cfg.Store.Get(ctx, name); return err })
	return b, err
}

func (s *Shipper) catalog(ctx context.Context, after string) (c *catalog, err error) {
	err = s.request(ctx, func(ctx context.Context) error { c, err = readCatalog(ctx, s.cfg.Store, s.ensemble, after); return err })
	return c, err
}

func (s *Shipper) request(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := f(ctx)
	if err != nil {
		s.count(func(a *facts.ArchiveStats) { a.Errors++ })
	}
	return err
}

// Source is a server whose log is archived: server.Backups.
type Source interface {
	LogPosition() facts.LogPosition
	ReplicatedLog(from uint64, size int64) ([]consensus.LogEntry, error)
	KeepLog(from uint64)
	// Capture returns the state, with everything that was committed before the call.
	Capture(ctx context.Context) (*facts.Capture, error)
}
