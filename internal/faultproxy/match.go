package faultproxy

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

const (
	// maxFrameBytes: a greater length is not the length of a request. ZooKeeper's default limit
	// (jute.maxbuffer) is 1 MiB.
	maxFrameBytes = 64 << 20
	// maxMultiBytes: a longer multi is not decoded, and no path prefix matches it.
	maxMultiBytes = 4 << 20
	// sequenceDigits is the length of the number in the name of a sequential znode.
	sequenceDigits = 10
	// requestBytes is the part of every request that is parsed: its length and header.
	requestBytes = 4 + proto.RequestHeaderBytes
)

// answer says whether a rule selects a request.
type answer uint8

const (
	no answer = iota
	yes
	unknown // not known before more of the request arrives
)

// request is the beginning of a request's frame.
type request struct {
	// From the length on; at least requestBytes, except for a connect request, and at most the
	// frame.
	seen    []byte
	bytes   int // of the whole frame with its length
	connect bool
	session int64
	header  proto.RequestHeader // zero for a connect request
}

func (a *Armed) selects(r *request) answer {
	f := &a.fault
	switch {
	case f.Session != 0 && f.Session != r.session:
		return no
	case r.connect:
		if f.Op == OpConnect {
			return yes
		}
		return no
	case !a.meaning.covers(r.header.Op):
		return no
	case r.header.Xid == proto.XidEvent && f.Kind != Delay:
		return no // its reply could not be told from an event
	case f.PathPrefix != "":
		return r.below(f.PathPrefix)
	}
	return yes
}

// below reports whether the request names a path with the prefix.
func (r *request) below(prefix string) answer {
	switch {
	case r.header.Op.Info().Path == proto.PathEach:
		switch {
		case r.bytes > maxMultiBytes:
			return no
		case len(r.seen) < r.bytes:
			return unknown
		}
		if slices.ContainsFunc(r.multi(), func(op proto.MultiOp) bool { return pathHasPrefix(op.Path, prefix) }) {
			return yes
		}
		return no
	case r.header.Op.Info().Path == proto.PathNone:
		return no
	}
	const at = requestBytes + 4
	if r.bytes < at {
		return no
	}
	if len(r.seen) < at {
		return unknown
	}
	length := int(int32(binary.BigEndian.Uint32(r.seen[requestBytes:])))
	if length < len(prefix) || length > r.bytes-at { // null, too short, or longer than the frame
		return no
	}
	// To decide, the prefix, a sequence number and a slash are enough.
	enough := min(length, len(prefix)+sequenceDigits+1)
	path := r.seen[at:]
	if len(path) < enough {
		if seen := min(len(path), len(prefix)); string(path[:seen]) != prefix[:seen] {
			return no
		}
		return unknown
	}
	if pathHasPrefix(string(path[:enough]), prefix) {
		return yes
	}
	return no
}

// multi returns the operations of a multi that has arrived whole, nil if it is malformed.
func (r *request) multi() []proto.MultiOp {
	d := jute.NewDecoder(r.seen[requestBytes:r.bytes])
	var m proto.MultiRequest
	if m.Decode(&d, r.header.Op) != nil {
		return nil
	}
	return m.Ops
}

// pathHasPrefix reports whether path is the prefix or a sequential znode of that name, or is below
// either of them. The first len(prefix) + sequenceDigits + 1 bytes of the path are enough.
func pathHasPrefix(path, prefix string) bool {
	rest, ok := strings.CutPrefix(path, prefix)
	switch {
	case !ok:
		return false
	case rest == "", rest[0] == '/', prefix[len(prefix)-1] == '/':
		return true
	case len(rest) < sequenceDigits, len(rest) > sequenceDigits && rest[sequenceDigits] != '/':
		return false
	}
	for i := range sequenceDigits { // ZooKeeper prints an overflowed counter with a minus sign
		if c := rest[i]; (c < '0' || c > '9') && (i > 0 || c != '-') {
			return false
		}
	}
	return true
}
