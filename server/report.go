package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// What servers tell each other beside the log, twice a tick. The first byte of a message is its kind; see docs/reference/formats.md, "Reports
// between servers". All of it may be lost.
const (
	reportHeard  = 1 // to the leader: sessions that were heard from, and a digest
	reportDiffer = 2 // from the leader: your state differs
	reportTaken  = 3 // from the leader: your report has come
)

const (
	// sampleEvery: the digest is kept of the state after each entry whose index is a multiple of this.
	sampleEvery = 16
	// sampleCount is how many digests are kept, for members that are ahead or behind.
	sampleCount = 1024
	// differTimes is how often a member must differ before it is told so where nobody else can say who is right.
	differTimes = 3
)

// ErrDiverged says that the state of this server is not that of the others.
var ErrDiverged = errors.New("server: the state differs from that of the other servers")

// divergedFile marks a data directory whose state differs; the server does not start with it.
const divergedFile = "DIVERGED"

// digests are those of the last entries, and what other members said of theirs.
type digests struct {
	mu      sync.Mutex
	samples [sampleCount]sample // by index/sampleEvery
	last    sample
	differ  map[uint64]opinion // leading: by member
}

type sample struct {
	index, digest uint64
}

// opinion is what a member's last report says of its state.
type opinion struct {
	times int       // that it differed, in a row; 0: it is the same
	at    time.Time // when the report came: who is silent has none
}

// note takes the digest of the state after an entry. Called by Apply.
func (d *digests) note(index, digest uint64) {
	if index%sampleEvery != 0 {
		return
	}
	d.mu.Lock()
	d.last = sample{index, digest}
	d.samples[index/sampleEvery%sampleCount] = d.last
	d.mu.Unlock()
}

func (d *digests) newest() sample {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last
}

// verdict is what comparing a member's digest says.
type verdict uint8

const (
	verdictNone  verdict = iota // the same, or not comparable, or not clear yet
	verdictOther                // the other one's state is wrong
	verdictOwn                  // the own state is wrong
)

// compare takes a member's digest. Where more members differ from this one than agree with it, this one is wrong. Opinions from before
// since don't count.
func (d *digests) compare(from uint64, theirs sample, now, since time.Time) verdict {
	d.mu.Lock()
	defer d.mu.Unlock()
	ours := d.samples[theirs.index/sampleEvery%sampleCount]
	if theirs.index == 0 || ours.index != theirs.index {
		return verdictNone
	}
	if ours.digest == theirs.digest {
		d.differ[from] = opinion{0, now}
		return verdictNone
	}
	d.differ[from] = opinion{d.differ[from].times + 1, now}
	agree, differ := 1, 0
	for _, o := range d.differ {
		switch {
		case o.at.Before(since):
		case o.times > 0:
			differ++
		default:
			agree++
		}
	}
	switch {
	case differ > agree:
		return verdictOwn
	case agree > differ || d.differ[from].times >= differTimes:
		return verdictOther
	}
	return verdictNone
}

// forget is for a new leader, who judges for itself.
func (d *digests) forget() {
	d.mu.Lock()
	d.differ = make(map[uint64]opinion)
	d.mu.Unlock()
}

// report tells the leader who was heard from since the last report, and the newest digest.
func (s *Server) report(leader uint64, now time.Time) {
	last := s.digests.newest()
	b := binary.AppendUvarint(binary.AppendUvarint([]byte{reportHeard}, last.index), last.digest)
	add := func(id proto.SessionID, heard time.Time) {
		b = binary.BigEndian.AppendUint64(b, uint64(id))
		b = binary.AppendUvarint(b, uint64(max(0, now.Sub(heard).Milliseconds())))
	}
	s.connMu.Lock()
	for id, c := range s.bySession {
		if heard := c.heard(); heard.After(s.reported) {
			add(id, heard)
		}
	}
	for id, heard := range s.left {
		if heard.After(s.reported) {
			add(id, heard)
		} else {
			delete(s.left, id)
		}
	}
	s.connMu.Unlock()
	s.reported = now.Add(-s.cfg.Tick) // a report may be lost, so each touch is in several
	s.node.Send(leader, b)
}

// received takes a message of another member.
func (s *Server) received(from uint64, b []byte) {
	if len(b) == 0 || !s.serving.Load() {
		return
	}
	switch b[0] {
	case reportHeard:
		if err := s.takeReport(from, b[1:]); err != nil {
			s.cfg.Logger.Warn("malformed report", "from", from, "error", err)
		}
	case reportTaken:
		if s.node.Status().Leader == from {
			s.heardOf.Store(int64(time.Since(s.begun)))
		}
	case reportDiffer:
		index, n := binary.Uvarint(b[1:])
		if n > 0 && s.node.Status().Leader == from {
			s.diverged(index)
		}
	}
}

func (s *Server) takeReport(from uint64, b []byte) error {
	var err error
	next := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			err, b = errors.New("it is cut short"), nil
			return 0
		}
		b = b[n:]
		return v
	}
	theirs := sample{next(), next()}
	if !s.node.Status().Leading {
		return err
	}
	s.node.Send(from, []byte{reportTaken})
	now := s.cfg.Now()
	s.trackMu.Lock()
	for len(b) > 0 && err == nil {
		if len(b) < 8 {
			err = errors.New("it is cut short")
			break
		}
		id := proto.SessionID(binary.BigEndian.Uint64(b))
		b = b[8:]
		ago := time.Duration(min(next(), uint64(time.Hour/time.Millisecond))) * time.Millisecond
		s.tracker.Touch(id, now.Add(-ago))
	}
	s.trackMu.Unlock()
	switch s.digests.compare(from, theirs, now, now.Add(-3*s.cfg.Tick)) {
	case verdictOwn:
		s.stats.digestsDiffer.Add(1)
		s.diverged(theirs.index)
	case verdictOther:
		s.stats.digestsDiffer.Add(1)
		s.cfg.Logger.Error("the state of a server differs from ours", "server", from, "index", theirs.index)
		s.node.Send(from, binary.AppendUvarint([]byte{reportDiffer}, theirs.index))
	}
	return err
}

// diverged stops this server for good: what it answers may be wrong, and it must not help to decide.
func (s *Server) diverged(index uint64) {
	err := fmt.Errorf("%w since entry %d at the latest", ErrDiverged, index)
	if s.cfg.Dir != "" {
		path := filepath.Join(s.cfg.Dir, divergedFile)
		what := fmt.Sprintf("%v.\nMove this data directory away and start the server with an empty one: it fetches the state from the others.\n", err)
		if writeErr := os.WriteFile(path, []byte(what), 0o600); writeErr != nil {
			err = errors.Join(err, writeErr)
		}
	}
	s.fail(err)
	// A server that serves has set this. Whoever owns the server may be slow to close it.
	s.life.cancel()
}

// checkDiverged refuses a data directory that was found to differ.
func (s *Server) checkDiverged() error {
	if s.cfg.Dir == "" {
		return nil
	}
	path := filepath.Join(s.cfg.Dir, divergedFile)
	if _, err := os.Stat(path); err != nil {
		return nil // not there, or the directory isn't: consensus says what is wrong with it
	}
	return fmt.Errorf("%w, see %s", ErrDiverged, path)
}
