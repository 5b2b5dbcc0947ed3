package core

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// These formats are described in docs/reference/formats.md: "Log entry", "Log state" and
// "Checkpoint: meta and buckets".

const (
	logStateVersion = 1
	// logStateOutdated is the version of the state of an outdated directory. Versions that do not
	// know the mark must not ignore it: the member would vote without what it acknowledged.
	logStateOutdated = 2
	metaVersion      = 3
)

var errBadFormat = errors.New("consensus: malformed record")

// AppendEntryHead encodes what comes before the data of a raft entry in the write-ahead log, whose
// own frame holds the index.
func AppendEntryHead(b []byte, e *raftpb.Entry) []byte {
	return append(binary.AppendUvarint(b, e.GetTerm()), byte(e.GetType()))
}

// AppendEntry encodes a raft entry with its data.
func AppendEntry(b []byte, e *raftpb.Entry) []byte {
	return append(AppendEntryHead(b, e), e.GetData()...)
}

// DecodeEntry reads the output of AppendEntry. The entry shares b.
func DecodeEntry(index uint64, b []byte) (*raftpb.Entry, error) {
	r := Uvarints{Rest: b}
	term := r.Next()
	if r.Bad || len(r.Rest) == 0 {
		return nil, fmt.Errorf("%w: log entry %d", errBadFormat, index)
	}
	e := &raftpb.Entry{Term: &term, Index: &index, Type: raftpb.EntryType(r.Rest[0]).Enum()}
	if len(r.Rest) > 1 {
		e.Data = r.Rest[1:]
	}
	return e, nil
}

// LogState is the state that the log holds in addition to its entries.
type LogState struct {
	Term, Vote, Commit uint64 // raft's hard state
	Incarnation        uint64 // of this server's stream; grows at each start
	Outdated           bool   // the directory was found to be older than what the member has acknowledged
}

// Append encodes the state.
func (s LogState) Append(b []byte) []byte {
	version := byte(logStateVersion)
	if s.Outdated {
		version = logStateOutdated
	}
	return appendUvarints(append(b, version), s.Term, s.Vote, s.Commit, s.Incarnation)
}

// DecodeLogState reads the output of Append. No bytes are the zero state.
func DecodeLogState(b []byte) (LogState, error) {
	if len(b) == 0 {
		return LogState{}, nil
	}
	if b[0] != logStateVersion && b[0] != logStateOutdated {
		return LogState{}, fmt.Errorf("%w: log state has version %d, this program knows %d and %d: start a version of gozkd that knows it", errBadFormat, b[0], logStateVersion, logStateOutdated)
	}
	r := Uvarints{Rest: b[1:]}
	s := LogState{Term: r.Next(), Vote: r.Next(), Commit: r.Next(), Incarnation: r.Next()}
	s.Outdated = b[0] == logStateOutdated
	if r.Bad {
		return LogState{}, fmt.Errorf("%w: log state", errBadFormat)
	}
	return s, nil
}

// HardState returns raft's part of the state.
func (s LogState) HardState() *raftpb.HardState {
	return &raftpb.HardState{Term: &s.Term, Vote: &s.Vote, Commit: &s.Commit}
}

// Meta describes the moment of a checkpoint. Without Conf there is none: the member is fresh.
type Meta struct {
	Member      uint64
	Level       Level  // the active feature level
	Cluster     uint64 // identifies the ensemble; 0: not known yet
	Index, Term uint64 // of the last entry in the state
	TimeMs      int64  // of the last batch in the state
	Conf        *raftpb.ConfState
	Streams     Streams
}

// Append encodes the meta, with a checksum at the end.
func (m *Meta) Append(b []byte) []byte {
	start := len(b)
	b = appendUvarints(append(b, metaVersion), uint64(m.Level), m.Member, m.Index, m.Term, uint64(m.TimeMs), m.Cluster)
	var autoLeave byte
	if m.Conf.GetAutoLeave() {
		autoLeave = 1
	}
	b = append(b, autoLeave)
	for _, ids := range [...][]uint64{
		m.Conf.GetVoters(), m.Conf.GetLearners(), m.Conf.GetVotersOutgoing(), m.Conf.GetLearnersNext(),
	} {
		b = appendUvarints(binary.AppendUvarint(b, uint64(len(ids))), ids...)
	}
	b = binary.AppendUvarint(b, uint64(len(m.Streams)))
	for _, id := range m.Streams.servers() {
		p := m.Streams[id]
		b = appendUvarints(b, id, p.Incarnation, p.Number)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// DecodeMeta reads the output of Meta.Append.
func DecodeMeta(b []byte) (Meta, error) {
	if len(b) < 5 {
		return Meta{}, fmt.Errorf("%w: checkpoint meta of %d bytes", errBadFormat, len(b))
	}
	body, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if got := crc32.Checksum(body, castagnoli); got != sum {
		return Meta{}, fmt.Errorf("%w: checkpoint meta has checksum %08x, want %08x", errBadFormat, got, sum)
	}
	version := body[0]
	r := Uvarints{Rest: body[1:]}
	level := Level(r.Next())
	switch {
	case version < metaVersion:
		return Meta{}, fmt.Errorf("consensus: %w: the checkpoint's format %d is of a version before the first release: start that version", ErrLevel, version)
	case version > metaVersion:
		return Meta{}, fmt.Errorf("consensus: %w: the checkpoint has level %d, and its format %d is not known here: start a version of gozkd that supports that level",
			ErrLevel, level, version)
	}
	m := Meta{Level: level, Member: r.Next(), Index: r.Next(), Term: r.Next(), TimeMs: int64(r.Next()), Cluster: r.Next(), Streams: Streams{}}
	m.Conf = &raftpb.ConfState{AutoLeave: proto.Bool(r.Next() == 1)}
	ids := func() (ids []uint64) {
		for n := r.Next(); n > 0 && !r.Bad; n-- {
			ids = append(ids, r.Next())
		}
		return ids
	}
	m.Conf.Voters, m.Conf.Learners, m.Conf.VotersOutgoing, m.Conf.LearnersNext = ids(), ids(), ids(), ids()
	for n := r.Next(); n > 0 && !r.Bad; n-- {
		id := r.Next()
		m.Streams[id] = StreamPosition{r.Next(), r.Next()}
	}
	if r.Bad {
		return Meta{}, fmt.Errorf("%w: checkpoint meta", errBadFormat)
	}
	return m, nil
}
