package members

import (
	"encoding/binary"
	"errors"

	"github.com/gozkd/gozkd/proto"
)

// LeaderTime in the place of a session in a report comes with the time in the leader's last answer,
// or 0. It tells the leader when the report was made, however long it was under way.
const LeaderTime = proto.SessionID(0)

// AppendState begins a report to the leader. The sessions that were heard from follow: AppendHeard.
func AppendState(b []byte, d Digest) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, d.Index), d.Hash)
}

// AppendHeard appends to a report that a session was heard from that many ms before the report.
func AppendHeard(b []byte, id proto.SessionID, ms uint64) []byte {
	return binary.AppendUvarint(binary.BigEndian.AppendUint64(b, uint64(id)), ms)
}

// ParseReport returns the digest in a report, and calls heard for each session.
func ParseReport(b []byte, heard func(id proto.SessionID, ms uint64)) (state Digest, err error) {
	next := func() (v uint64) {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			err, n = errors.New("truncated"), len(b)
		}
		b = b[n:]
		return v
	}
	state = Digest{Index: next(), Hash: next()}
	for len(b) > 0 {
		if len(b) < 8 {
			return state, errors.New("truncated")
		}
		id := proto.SessionID(binary.BigEndian.Uint64(b))
		b = b[8:]
		if ms := next(); err == nil {
			heard(id, ms)
		}
	}
	return state, err
}
