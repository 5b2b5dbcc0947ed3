package server

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/liveness"
	"github.com/gozkd/gozkd/server/internal/members"
	"github.com/gozkd/gozkd/server/internal/meter"
)

// The kinds of messages that servers send each other outside of the log, up to twice a tick. The
// kind is the first byte of a message; see "Messages between members" in docs/reference/formats.md.
// All of them may be lost.
const (
	reportHeard  = 1 // to the leader: sessions that were heard from, and a digest
	reportDiffer = 2 // from the leader: your state differs
	reportTaken  = 3 // from the leader: your report has arrived, at that time of mine
	reportLines  = 4 // to the leader: the server lines of my configuration, which are not the members of the state
)

// noSession in the place of a session in a report comes before the time that the leader's last
// answer names. It tells the leader when the report was made, however long it was under way.
const noSession = proto.SessionID(0)

// leaderStamp is the time that the leader's last answer to a report names.
type leaderStamp struct {
	ms    uint64
	since time.Time // Status.Since: under another leader the time means nothing
}

// report tells the leader which sessions were heard from since the last report that has arrived,
// and the newest digest. Each report begins a tick earlier, because the leader's answer may be to
// an earlier report.
func (s *Server) report(st consensus.Status, now time.Time) {
	l := &s.loop
	if s.leader.confirmed.Load() > l.reportedMono {
		l.reportedUntil = l.reportedAt.Add(-s.cfg.Tick)
	}
	l.reportedAt, l.reportedMono = now, int64(time.Since(s.startedMono))
	last := s.digests.Newest()
	b := binary.AppendUvarint(binary.AppendUvarint([]byte{reportHeard}, last.Index), last.Hash)
	add := func(id proto.SessionID, ms uint64) {
		b = binary.AppendUvarint(binary.BigEndian.AppendUint64(b, uint64(id)), ms)
	}
	var stampMs uint64 // the leader has not answered yet: the report may have been made at any time
	if stamp := s.leader.stamp.Load(); stamp != nil && stamp.since.Equal(st.Since) {
		stampMs = stamp.ms
	}
	add(noSession, stampMs)
	s.conns.heardSince(l.reportedUntil, func(id proto.SessionID, heard time.Time) {
		add(id, uint64(max(0, now.Sub(heard).Milliseconds())))
	})
	s.node.Send(st.Leader, b)
}

// received takes a message of another member.
func (s *Server) received(from uint64, b []byte) {
	if len(b) == 0 || !s.life.Serving.Load() {
		return
	}
	switch b[0] {
	case reportHeard:
		if err := s.takeReport(from, b[1:]); err != nil {
			s.cfg.Logger.Warn("malformed report", "from", memberid.Number(from), "error", err)
		}
	case reportTaken:
		if st := s.node.Status(); st.Leader == from {
			s.leader.confirmed.Store(int64(time.Since(s.startedMono)))
			if ms, n := binary.Uvarint(b[1:]); n > 0 {
				s.leader.stamp.Store(&leaderStamp{ms, st.Since})
			}
		}
	case reportLines:
		if err := s.loop.lines.Take(from, string(b[1:])); err != nil {
			s.cfg.Logger.Warn("malformed report", "from", memberid.Number(from), "error", err)
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
	theirs := members.Digest{Index: next(), Hash: next()}
	if !s.node.Status().Leading {
		return err
	}
	now := s.cfg.Now()
	uptimeMs := uint64(max(0, now.Sub(s.startedWall).Milliseconds()))
	s.node.Send(from, binary.AppendUvarint([]byte{reportTaken}, uptimeMs))
	report := liveness.Report{Arrived: now, MadeAfter: now.Add(-s.cfg.Tick / 2)} // a version that names no time reports twice a tick
	s.expiry.mu.Lock()
	for len(b) > 0 && err == nil {
		if len(b) < 8 {
			err = errors.New("truncated")
			break
		}
		id := proto.SessionID(binary.BigEndian.Uint64(b))
		b = b[8:]
		ms := next()
		if id == noSession {
			report.FirstOfProcess = ms == 0
			report.MadeAfter = s.startedWall.Add(time.Duration(min(ms, uptimeMs)) * time.Millisecond)
			continue
		}
		ago := time.Duration(min(ms, uint64(time.Hour/time.Millisecond))) * time.Millisecond
		s.expiry.Touch(id, now.Add(-ago))
	}
	s.expiry.mu.Unlock()
	if err == nil {
		s.reportArrived(uint8(from), report)
	}
	switch s.digests.Compare(from, theirs, now, now.Add(-3*s.cfg.Tick)) {
	case members.OwnDiverged:
		s.meter.Count(meter.DigestsDiffer)
		s.diverged(theirs.Index)
	case members.OtherDiverged:
		s.meter.Count(meter.DigestsDiffer)
		s.cfg.Logger.Error("the state of a server differs from that of this server",
			"server", memberid.Number(from), "index", theirs.Index)
		s.node.Send(from, binary.AppendUvarint([]byte{reportDiffer}, theirs.Index))
	}
	return err
}
