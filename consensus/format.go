package consensus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// The formats here are in docs/reference/formats.md: "Log entry", "Log state" and "Checkpoint: meta and buckets".

const (
	stateVersion = 1
	metaVersion  = 2
)

var errBadFormat = errors.New("consensus: malformed record")

// appendEntry encodes a raft entry as the WAL's data; its index stands in the WAL's own frame.
func appendEntry(b []byte, e *raftpb.Entry) []byte {
	b = binary.AppendUvarint(b, e.GetTerm())
	b = append(b, byte(e.GetType()))
	return append(b, e.GetData()...)
}

func decodeEntry(index uint64, b []byte) (*raftpb.Entry, error) {
	r := uvarints{b: b}
	term := r.next()
	if r.bad || len(r.b) == 0 {
		return nil, fmt.Errorf("%w: log entry %d", errBadFormat, index)
	}
	e := &raftpb.Entry{Term: &term, Index: &index, Type: raftpb.EntryType(r.b[0]).Enum()}
	if len(r.b) > 1 {
		e.Data = r.b[1:]
	}
	return e, nil
}

// logState is the small state beside the log's entries.
type logState struct {
	Term, Vote, Commit uint64 // raft's hard state
	Incarnation        uint64 // of this server's stream; grows at each start
}

func (s logState) append(b []byte) []byte {
	b = append(b, stateVersion)
	for _, v := range [...]uint64{s.Term, s.Vote, s.Commit, s.Incarnation} {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

func decodeLogState(b []byte) (logState, error) {
	if len(b) == 0 {
		return logState{}, nil
	}
	if b[0] != stateVersion {
		return logState{}, fmt.Errorf("%w: log state has version %d, this program knows %d", errBadFormat, b[0], stateVersion)
	}
	r := uvarints{b: b[1:]}
	s := logState{r.next(), r.next(), r.next(), r.next()}
	if r.bad {
		return logState{}, fmt.Errorf("%w: log state", errBadFormat)
	}
	return s, nil
}

func (s logState) hardState() *raftpb.HardState {
	return &raftpb.HardState{Term: &s.Term, Vote: &s.Vote, Commit: &s.Commit}
}

// checkpointMeta says of which moment a checkpoint is.
type checkpointMeta struct {
	Member      uint64
	Cluster     uint64 // 0: not known yet
	Index, Term uint64 // of the last entry in it
	TimeMs      int64  // of the last batch in it
	Conf        *raftpb.ConfState
	Streams     streams
}

func (m *checkpointMeta) append(b []byte) []byte {
	b = append(b, metaVersion)
	for _, v := range [...]uint64{m.Member, m.Index, m.Term, uint64(m.TimeMs), m.Cluster} {
		b = binary.AppendUvarint(b, v)
	}
	var autoLeave byte
	if m.Conf.GetAutoLeave() {
		autoLeave = 1
	}
	b = append(b, autoLeave)
	for _, ids := range [...][]uint64{
		m.Conf.GetVoters(), m.Conf.GetLearners(), m.Conf.GetVotersOutgoing(), m.Conf.GetLearnersNext(),
	} {
		b = binary.AppendUvarint(b, uint64(len(ids)))
		for _, id := range ids {
			b = binary.AppendUvarint(b, id)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(m.Streams)))
	for _, id := range m.Streams.servers() {
		p := m.Streams[id]
		b = binary.AppendUvarint(b, id)
		b = binary.AppendUvarint(b, p.incarnation)
		b = binary.AppendUvarint(b, p.number)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func decodeMeta(b []byte) (checkpointMeta, error) {
	if len(b) < 5 {
		return checkpointMeta{}, fmt.Errorf("%w: checkpoint meta of %d bytes", errBadFormat, len(b))
	}
	body, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if got := crc32.Checksum(body, castagnoli); got != sum {
		return checkpointMeta{}, fmt.Errorf("%w: checkpoint meta has checksum %08x, want %08x", errBadFormat, got, sum)
	}
	version := body[0]
	if version != 1 && version != metaVersion {
		return checkpointMeta{}, fmt.Errorf("%w: checkpoint has version %d, this program knows 1 and %d", errBadFormat, version, metaVersion)
	}
	r := uvarints{b: body[1:]}
	m := checkpointMeta{Member: r.next(), Index: r.next(), Term: r.next(), TimeMs: int64(r.next()), Conf: &raftpb.ConfState{}, Streams: streams{}}
	if version >= 2 { // version 1 knew one member
		m.Cluster = r.next()
		m.Conf.AutoLeave = proto.Bool(r.next() == 1)
	}
	ids := func() (ids []uint64) {
		for n := r.next(); n > 0 && !r.bad; n-- {
			ids = append(ids, r.next())
		}
		return ids
	}
	m.Conf.Voters, m.Conf.Learners = ids(), ids()
	if version >= 2 {
		m.Conf.VotersOutgoing, m.Conf.LearnersNext = ids(), ids()
	}
	for n := r.next(); n > 0 && !r.bad; n-- {
		id := r.next()
		m.Streams[id] = position{r.next(), r.next()}
	}
	if r.bad {
		return checkpointMeta{}, fmt.Errorf("%w: checkpoint meta", errBadFormat)
	}
	return m, nil
}
