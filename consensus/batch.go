package consensus

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// batchVersion is the first byte of an entry that holds a batch. See docs/reference/formats.md, "Batch".
const batchVersion = 1

var errBadBatch = errors.New("consensus: malformed batch")

// group is a run of requests of one stream with consecutive numbers.
type group struct {
	server, incarnation uint64
	first               uint64 // number of the first request
	payloads            [][]byte
}

// last is the number of the last request.
func (g *group) last() uint64 { return g.first + uint64(len(g.payloads)) - 1 }

// requestBytes is what a request takes up in an entry beside its payload, at most.
const requestBytes = binary.MaxVarintLen32

// size is what the group's requests take up in an entry, at most.
func (g *group) size() (n int) {
	for _, p := range g.payloads {
		n += len(p) + requestBytes
	}
	return n
}

func appendBatchHeader(b []byte, timeMs int64) []byte {
	return binary.AppendUvarint(append(b, batchVersion), uint64(timeMs))
}

func appendGroup(b []byte, g *group) []byte {
	b = binary.AppendUvarint(b, g.server)
	b = binary.AppendUvarint(b, g.incarnation)
	b = binary.AppendUvarint(b, g.first)
	b = binary.AppendUvarint(b, uint64(len(g.payloads)))
	for _, p := range g.payloads {
		b = append(binary.AppendUvarint(b, uint64(len(p))), p...)
	}
	return b
}

// decode reads what appendGroup wrote. The payloads share the input.
func (g *group) decode(r *uvarints) {
	*g = group{server: r.next(), incarnation: r.next(), first: r.next()}
	for count := r.next(); count > 0 && !r.bad; count-- {
		g.payloads = append(g.payloads, r.bytes())
	}
}

// readBatch calls each for every request of the batch, in order. Payloads share b.
func readBatch(b []byte, each func(server, incarnation, number uint64, payload []byte)) (timeMs int64, err error) {
	if len(b) == 0 || b[0] != batchVersion {
		return 0, fmt.Errorf("%w: version byte", errBadBatch)
	}
	r := uvarints{b: b[1:]}
	timeMs = int64(r.next())
	for len(r.b) > 0 && !r.bad {
		server, incarnation, first, count := r.next(), r.next(), r.next(), r.next()
		for i := uint64(0); i < count && !r.bad; i++ {
			if p := r.bytes(); !r.bad {
				each(server, incarnation, first+i, p)
			}
		}
	}
	if r.bad {
		return 0, errBadBatch
	}
	return timeMs, nil
}

// uvarints reads unsigned varints; after the first bad one all is zero.
type uvarints struct {
	b   []byte
	bad bool
}

func (r *uvarints) next() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || r.bad {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

// bytes reads a length and that many bytes, which share the input.
func (r *uvarints) bytes() []byte {
	n := r.next()
	if n > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	p := r.b[:n:n]
	r.b = r.b[n:]
	return p
}
