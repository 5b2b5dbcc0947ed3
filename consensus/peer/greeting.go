package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

const (
	magic         = "gozkdNET"
	version       = 1
	greetingBytes = 40   // of the head
	maxReason     = 1024 // bytes of a reason
)

// What a greeting is for.
const (
	kindFrames     = 1
	kindCheckpoint = 2
	kindAccepted   = 3 // answers; the contents are the answerer's hello
	kindRefused    = 4 // answers; the contents are the reason
)

// greeting is the first message in either direction.
type greeting struct {
	kind     uint32
	from, to uint64
	contents []byte
}

// append encodes g behind b.
func (g *greeting) append(b []byte) []byte {
	start := len(b)
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint32(b, version)
	b = binary.LittleEndian.AppendUint32(b, g.kind)
	b = binary.LittleEndian.AppendUint64(b, g.from)
	b = binary.LittleEndian.AppendUint64(b, g.to)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(g.contents)))
	b = binary.LittleEndian.AppendUint32(b, checksum(b[start:], g.contents))
	return append(b, g.contents...)
}

// versionError says that the other side speaks another version than ours.
type versionError struct{ theirs uint32 }

func (e *versionError) Error() string {
	return fmt.Sprintf("peer: version %d of the protocol between members is spoken there, version %d here", e.theirs, version)
}

// readGreeting reads exactly one greeting. Errors: those of r, ErrCorrupt (also for bytes that are none at all) and
// *versionError, which is returned without looking at the rest: that is another version's business.
func readGreeting(r io.Reader) (greeting, error) {
	var head [greetingBytes]byte
	if _, err := io.ReadFull(r, head[:12]); err != nil {
		return greeting{}, err
	}
	if string(head[:8]) != magic {
		return greeting{}, fmt.Errorf("%w: begins with %q, which is no hello of gozkd", ErrCorrupt, head[:8])
	}
	// NB: A refusal is read from all versions: that is how two versions tell each other why they don't talk.
	theirs := binary.LittleEndian.Uint32(head[8:])
	if _, err := io.ReadFull(r, head[12:]); err != nil {
		if theirs != version {
			return greeting{}, &versionError{theirs}
		}
		return greeting{}, noEOF(err)
	}
	g := greeting{
		kind: binary.LittleEndian.Uint32(head[12:]),
		from: binary.LittleEndian.Uint64(head[16:]),
		to:   binary.LittleEndian.Uint64(head[24:]),
	}
	if theirs != version && g.kind != kindRefused {
		return greeting{}, &versionError{theirs}
	}
	n, limit := binary.LittleEndian.Uint32(head[32:]), uint32(MaxHello)
	if g.kind == kindRefused {
		limit = maxReason
	}
	if n > limit {
		return greeting{}, fmt.Errorf("%w: hello of %d bytes, at most %d are allowed", ErrCorrupt, n, limit)
	}
	var err error
	if g.contents, err = readBody(r, nil, int(n)); err != nil {
		return greeting{}, err
	}
	if want, got := binary.LittleEndian.Uint32(head[36:]), checksum(head[:36], g.contents); want != got {
		return greeting{}, fmt.Errorf("%w: checksum of the hello is %08x, not %08x", ErrCorrupt, got, want)
	}
	return g, nil
}

// castagnoli is a table, not state: crc32 makes it once.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is the CRC-32C of a head and what follows it.
func checksum(head, body []byte) uint32 {
	return crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, body)
}

// noEOF turns io.EOF into io.ErrUnexpectedEOF: something had begun.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
