package server

import (
	"slices"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/server/facts"
)

// LogPosition describes how far this server has applied the replicated log.
type LogPosition = facts.LogPosition

// ArchiveStats is what the program that archives the log knows about the archive.
type ArchiveStats = facts.ArchiveStats

// LogPosition returns the present position. It is zero before the server has opened its data, and
// after Close.
func (s *Server) LogPosition() LogPosition {
	if !s.life.Accepting.Load() {
		return LogPosition{}
	}
	st := s.node.Status()
	p := LogPosition{Ensemble: s.node.Cluster(), Applied: st.Applied, Leads: st.Leading && st.Current}
	order := slices.Concat(slices.Sorted(slices.Values(st.Learners)), slices.Sorted(slices.Values(st.Voters)))
	if i := slices.Index(order, st.Leader); i >= 0 { // a leader is known
		order = append(slices.Delete(order, i, i+1), st.Leader)
	}
	p.Turn = max(slices.Index(order, uint64(s.cfg.MemberID)), 0)
	p.Members = len(order)
	return p
}

// ReplicatedLog returns applied entries of the log from an index on, as many as have size bytes,
// but at least one if there is one. If the first entry is not in the log any more, the error is
// consensus.ErrCompacted.
func (s *Server) ReplicatedLog(from uint64, size int64) ([]consensus.LogEntry, error) {
	if !s.life.Accepting.Load() {
		return nil, s.life.WhyNot()
	}
	return s.node.Log(from, size)
}

// KeepLog says that all entries before an index are archived. Until it is called for the first
// time, nothing is. Entries that are not archived stay in the log, up to Config.ArchiveBytes.
func (s *Server) KeepLog(from uint64) {
	if s.life.Accepting.Load() {
		s.node.KeepFrom(from)
	}
}

// addArchive appends what the program knows about the archive.
func (s *Server) addArchive(l *facts.Values) {
	if s.cfg.ArchiveStats == nil {
		return
	}
	a := s.cfg.ArchiveStats()
	verified := int64(0)
	if !a.Verified.IsZero() {
		verified = a.Verified.Unix()
	}
	l.Add("gozkd_archive_lag_seconds", float64(a.Lag.Milliseconds())/1000)
	l.Add("gozkd_archive_shipper", flag(a.Shipper))
	l.Add("gozkd_archive_objects_total", a.Objects)
	l.Add("gozkd_archive_bytes_total", a.Bytes)
	l.Add("gozkd_archive_errors_total", a.Errors)
	l.Add("gozkd_archive_gaps_total", a.Gaps)
	l.Add("gozkd_archive_verified_seconds", verified)
	l.Add("gozkd_archive_verify_failed", flag(a.VerifyFailed))
}
