package server

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
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
	reportHeard   = 1 // to the leader: sessions that were heard from, and a digest
	reportDiffer  = 2 // from the leader: your state differs
	reportTaken   = 3 // from the leader: your report has arrived, at that time of mine
	reportLines   = 4 // to the leader: the server lines of my configuration, which are not the members of the state
	reportAbility = 5 // to the leader: my ability, see package capacity
	reportSeek    = 6 // to all: I am out of touch with the leader, and know members of that version
	reportMembers = 7 // the answer: the members of my state, which are newer
)

// report tells the leader which sessions were heard from since the last report that has arrived,
// and the newest digest.
func (s *leadership) report(st consensus.Status, now time.Time) {
	after, leaderMs := s.contact.NextReport(termOf(st), now)
	b := members.AppendHeard(members.AppendState([]byte{reportHeard}, s.digests.Newest()), members.LeaderTime, leaderMs)
	s.conns.heardSince(after, now, func(id proto.SessionID, heard time.Time) {
		b = members.AppendHeard(b, id, uint64(max(0, now.Sub(heard).Milliseconds())))
	})
	s.node.Send(st.Leader, b)
	s.greeted = st.Since
}

func termOf(st consensus.Status) uint64 {
	if !st.Current {
		return 0
	}
	return st.Term
}

// greet reports at once to a leader that is found, or found again. A leader lets the sessions of a
// server that does not report live for a tick longer than their timeout. A server that serves
// clients again after a pause, or after it was cut off, and fails before its next report, must not
// leave less to those clients.
func (s *leadership) greet(st consensus.Status) {
	if st.Current && !st.Leading && !st.Since.Equal(s.greeted) {
		s.report(st, s.cfg.Now())
	}
}

func (s *leadership) received(from uint64, b []byte) {
	if len(b) == 0 || b[0] < reportSeek && !s.life.Serving.Load() {
		return
	}
	var err error
	switch b[0] {
	case reportSeek:
		err = s.tellMembers(from, b[1:])
	case reportMembers:
		if text, mine := bytes.CutPrefix(b[1:], s.nonce[:]); mine {
			err = s.ports.search.Learn(from, string(text))
		}
	case reportHeard:
		err = s.takeReport(from, b[1:])
	case reportLines:
		err = s.lines.Take(from, string(b[1:]))
	case reportTaken:
		if st := s.node.Status(); st.Leader == from {
			ms, n := binary.Uvarint(b[1:])
			s.contact.Answered(termOf(st), ms, n > 0, time.Now())
		}
	case reportAbility:
		err = s.growth.take(from, b[1:])
	case reportDiffer:
		index, n := binary.Uvarint(b[1:])
		if n > 0 && s.node.Status().Leader == from {
			s.diverged(index)
		}
	}
	if err != nil {
		s.cfg.Logger.Warn("malformed report", "from", memberid.Number(from), "error", err)
	}
}

// seek looks for a leader that this server does not know, or not at its address, if this server is
// out of touch: it missed a reconfig, and asks the connected members for newer members.
func (s *leadership) seek(outOfTouch bool) {
	if s.alone() {
		return
	}
	s.ports.search.Seek(outOfTouch, s.node.SetMembers)
	if !outOfTouch {
		return
	}
	b := append([]byte{reportSeek}, s.nonce[:]...)
	for _, id := range s.node.Connected() {
		s.node.Send(id, binary.AppendUvarint(slices.Clip(b), uint64(s.ports.search.Known(id))))
	}
}

// tellMembers answers a member that is out of touch with the leader, if the members of the state
// are newer than those that it knows. The nonce in b proves that the answer comes from where the
// question went: the address of a member.
func (s *leadership) tellMembers(to uint64, b []byte) error {
	end := min(len(b), len(s.nonce))
	known, n := binary.Uvarint(b[end:])
	if n <= 0 {
		return errors.New("truncated")
	}
	set, version, _ := s.state.membership()
	if uint64(version) > known {
		s.node.Send(to, append(append([]byte{reportMembers}, b[:end]...), set.Text(version)...))
	}
	return nil
}

// takeReport touches, on the leader, the sessions in a report, and compares its digest.
func (s *leadership) takeReport(from uint64, b []byte) error {
	st, now := s.node.Status(), s.cfg.Now()
	if !st.Leading {
		return nil
	}
	uptimeMs := uint64(max(0, now.Sub(s.startedWall).Milliseconds()))
	s.node.Send(from, binary.AppendUvarint([]byte{reportTaken}, uptimeMs))
	report := liveness.Report{Arrived: now, MadeAfter: now.Add(-s.cfg.Tick / 2)} // a version that names no time reports twice a tick
	jumped := time.Duration(0)
	theirs, err := members.ParseReport(b, func(id proto.SessionID, ms uint64) {
		if id == members.LeaderTime {
			report.FirstOfProcess = ms == 0
			report.MadeAfter = s.startedWall.Add(time.Duration(min(ms, uptimeMs)) * time.Millisecond)
			jumped = s.sessions.expiry.Jumped(report.MadeAfter)
			return
		}
		ago := time.Duration(min(ms, uint64(time.Hour/time.Millisecond))) * time.Millisecond
		s.sessions.expiry.Touch(id, now.Add(-ago-jumped))
	})
	if err == nil {
		s.sessions.reported(uint8(from), report)
	}
	mono := time.Now() // the age of an opinion is not by a clock that jumps
	switch s.digests.Compare(from, theirs, st.Since, mono, mono.Add(-3*s.cfg.Tick)) {
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
