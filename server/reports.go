package server

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// The kinds of messages that servers send each other outside of the log, twice a tick. The kind is
// the first byte of a message; see "Reports between servers" in docs/reference/formats.md. All of
// them may be lost.
const (
	reportHeard  = 1 // to the leader: sessions that were heard from, and a digest
	reportDiffer = 2 // from the leader: your state differs
	reportTaken  = 3 // from the leader: your report has arrived
)

// report tells the leader which sessions were heard from since the last report that has arrived,
// and the newest digest. Each report begins a tick earlier, because the leader's answer may be to an
// earlier report.
func (s *Server) report(leader uint64, now time.Time) {
	l := &s.loop
	if s.leader.confirmed.Load() > l.reportedMono {
		l.reportedUntil = l.reportedAt.Add(-s.cfg.Tick)
	}
	l.reportedAt, l.reportedMono = now, int64(time.Since(s.startedMono))
	last := s.digests.newest()
	b := binary.AppendUvarint(binary.AppendUvarint([]byte{reportHeard}, last.index), last.hash)
	s.conns.heardSince(l.reportedUntil, func(id proto.SessionID, heard time.Time) {
		b = binary.BigEndian.AppendUint64(b, uint64(id))
		b = binary.AppendUvarint(b, uint64(max(0, now.Sub(heard).Milliseconds())))
	})
	s.node.Send(leader, b)
}

// received takes a message of another member.
func (s *Server) received(from uint64, b []byte) {
	if len(b) == 0 || !s.life.serving.Load() {
		return
	}
	switch b[0] {
	case reportHeard:
		if err := s.takeReport(from, b[1:]); err != nil {
			s.cfg.Logger.Warn("malformed report", "from", from, "error", err)
		}
	case reportTaken:
		if s.node.Status().Leader == from {
			s.leader.confirmed.Store(int64(time.Since(s.startedMono)))
		}
	case reportDiffer:
		index, n := binary.Uvarint(b[1:])
		if n > 0 && s.node.Status().Leader == from {
			s.diverged(index)
		}
	}
}

// takeReport touches the sessions in a report, and compares its digest. takeReport does nothing
// unless this server leads.
func (s *Server) takeReport(from uint64, b []byte) error {
	var err error
	next := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			err, b = errors.New("truncated"), nil
			return 0
		}
		b = b[n:]
		return v
	}
	theirs := digest{next(), next()}
	if !s.node.Status().Leading {
		return err
	}
	s.node.Send(from, []byte{reportTaken})
	now := s.cfg.Now()
	s.expiry.mu.Lock()
	for len(b) > 0 && err == nil {
		if len(b) < 8 {
			err = errors.New("truncated")
			break
		}
		id := proto.SessionID(binary.BigEndian.Uint64(b))
		b = b[8:]
		ago := time.Duration(min(next(), uint64(time.Hour/time.Millisecond))) * time.Millisecond
		s.expiry.tracker.Touch(id, now.Add(-ago))
	}
	if err == nil {
		s.expiry.reported[uint8(from)] = now
	}
	s.expiry.mu.Unlock()
	switch s.digests.compare(from, theirs, now, now.Add(-3*s.cfg.Tick)) {
	case verdictOwn:
		s.meter.DigestsDiffer.Add(1)
		s.diverged(theirs.index)
	case verdictOther:
		s.meter.DigestsDiffer.Add(1)
		s.cfg.Logger.Error("the state of a server differs from that of this server", "server", from, "index", theirs.index)
		s.node.Send(from, binary.AppendUvarint([]byte{reportDiffer}, theirs.index))
	}
	return err
}
