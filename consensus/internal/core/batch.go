package core

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Batch holds the requests of a raft entry.
type Batch struct {
	Index   uint64 // of the raft entry
	NewTerm bool   // this is the first entry of a raft term
	TimeMs  int64  // the leader's wall clock, Unix milliseconds; never less than in the previous batch (C6)
	Level   Level  // the active feature level; never less than in the previous batch
	// Requests are the accepted requests (C2), in order; there may be none. Valid during Apply.
	Requests []Request
	// Proposed is when this member sent its own requests of the batch to the leader or, if it
	// leads, made the entry. EntryAt is when the entry was made here or arrived. Synced is when it
	// was in the log here. All three are readings of Config.Now. Zero means unknown: the entry was
	// in the log at the start, or the batch holds no request of this member.
	Proposed, EntryAt, Synced time.Time
}

// Request is a request of a batch.
type Request struct {
	Payload []byte // as proposed; valid during Apply
	Ref     any    // as proposed, if this process proposed the request; otherwise nil
}

// batchVersion is the first byte of an entry with a batch. See docs/reference/formats.md, "Batch".
const batchVersion = 1

var errBadBatch = errors.New("consensus: malformed batch")

// RequestRun is a run of requests of one stream with consecutive numbers.
type RequestRun struct {
	Server, Incarnation uint64
	First               uint64 // number of the first request
	Payloads            [][]byte
}

// Last returns the number of the last request.
func (g *RequestRun) Last() uint64 { return g.First + uint64(len(g.Payloads)) - 1 }

// requestBytes is the most that a request takes in an entry in addition to its payload.
const requestBytes = binary.MaxVarintLen32

// size returns the most that the requests of the run take in an entry.
func (g *RequestRun) size() (n int) {
	for _, p := range g.Payloads {
		n += len(p) + requestBytes
	}
	return n
}

func appendBatchHeader(b []byte, timeMs int64) []byte {
	return appendUvarints(append(b, batchVersion), uint64(timeMs))
}

func appendUvarints(b []byte, values ...uint64) []byte {
	for _, v := range values {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

func appendRun(b []byte, g *RequestRun) []byte {
	b = appendUvarints(b, g.Server, g.Incarnation, g.First, uint64(len(g.Payloads)))
	for _, p := range g.Payloads {
		b = append(binary.AppendUvarint(b, uint64(len(p))), p...)
	}
	return b
}

// decode reads the output of appendRun. The payloads share the input.
func (g *RequestRun) decode(r *Uvarints) {
	*g = RequestRun{Server: r.Next(), Incarnation: r.Next(), First: r.Next()}
	for count := r.Next(); count > 0 && !r.Bad; count-- {
		g.Payloads = append(g.Payloads, r.bytes())
	}
}

// ReadBatch calls each for every request of an entry, in order. Payloads share b.
func ReadBatch(b []byte, each func(server, incarnation, number uint64, payload []byte)) (timeMs int64, err error) {
	if len(b) == 0 || b[0] != batchVersion {
		return 0, fmt.Errorf("%w: version byte", errBadBatch)
	}
	r := Uvarints{Rest: b[1:]}
	timeMs = int64(r.Next())
	for len(r.Rest) > 0 && !r.Bad {
		server, incarnation, first, count := r.Next(), r.Next(), r.Next(), r.Next()
		for i := uint64(0); i < count && !r.Bad; i++ {
			if p := r.bytes(); !r.Bad {
				each(server, incarnation, first+i, p)
			}
		}
	}
	if r.Bad {
		return 0, errBadBatch
	}
	return timeMs, nil
}

// Uvarints reads unsigned varints. After the first malformed varint every result is zero.
type Uvarints struct {
	Rest []byte // not read yet
	Bad  bool   // the input was malformed
}

// Next returns the next varint.
func (r *Uvarints) Next() uint64 {
	v, n := binary.Uvarint(r.Rest)
	if n <= 0 || r.Bad {
		r.Bad = true
		return 0
	}
	r.Rest = r.Rest[n:]
	return v
}

// bytes reads a length and that many bytes, which share the input.
func (r *Uvarints) bytes() []byte {
	n := r.Next()
	if n > uint64(len(r.Rest)) {
		r.Bad = true
		return nil
	}
	p := r.Rest[:n:n]
	r.Rest = r.Rest[n:]
	return p
}
