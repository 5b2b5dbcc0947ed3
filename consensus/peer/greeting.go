package peer

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/gozkd/gozkd/internal/accept"
	"github.com/gozkd/gozkd/internal/bodyread"
	"github.com/gozkd/gozkd/internal/neterr"
)

const (
	magic         = neterr.MemberMagic
	version       = 1
	greetingBytes = 40 // of the header
	maxContents   = 64 << 10
	maxReason     = 1024 // bytes of a reason
)

// Kinds of greetings.
const (
	kindFrames     = 1
	kindCheckpoint = 2
	kindAccepted   = 3 // answer, with the hello of the acceptor
	kindRefused    = 4 // answer, with the reason
	kindChallenge  = 5 // answer to a caller that has a secret: prove that
	kindProof      = 6 // the caller's reply to a challenge
	kindConfirm    = 7 // hello that asks: are you making the connection with this nonce?
	kindConfirmed  = 8 // answer: yes
	kindDenied     = 9 // answer: no
)

// greeting is the first message in either direction.
type greeting struct {
	kind     uint32
	from, to uint64
	contents []byte
}

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

// versionError is returned if the other side uses another version of the protocol.
type versionError struct{ theirs uint32 }

func (e *versionError) Error() string {
	return fmt.Sprintf("peer: the other side uses version %d of the protocol between members, this program version %d", e.theirs, version)
}

// readGreeting reads exactly one greeting. An error is that of r, wraps ErrCorrupt, or is a
// *versionError, which is returned without decoding the rest.
func readGreeting(r io.Reader) (greeting, error) {
	var head [greetingBytes]byte
	if _, err := io.ReadFull(r, head[:12]); err != nil {
		return greeting{}, err
	}
	if string(head[:8]) != magic {
		hint := ""
		if speaks := accept.Protocol(head[:]); speaks != "" {
			hint = ": the other side speaks " + speaks
		}
		return greeting{}, fmt.Errorf("%w: the first bytes are %q, which is no hello of gozkd%s", ErrCorrupt, head[:8], hint)
	}
	// Refusals of all versions are decoded, so that versions can say why they don't connect.
	theirs := binary.LittleEndian.Uint32(head[8:])
	if _, err := io.ReadFull(r, head[12:]); err != nil {
		if theirs != version {
			return greeting{}, &versionError{theirs}
		}
		return greeting{}, bodyread.Within(err)
	}
	g := greeting{
		kind: binary.LittleEndian.Uint32(head[12:]),
		from: binary.LittleEndian.Uint64(head[16:]),
		to:   binary.LittleEndian.Uint64(head[24:]),
	}
	if theirs != version && g.kind != kindRefused {
		return greeting{}, &versionError{theirs}
	}
	n, limit := binary.LittleEndian.Uint32(head[32:]), uint32(maxContents)
	if g.kind == kindRefused {
		limit = maxReason
	}
	if n > limit {
		return greeting{}, fmt.Errorf("%w: hello of %d bytes, the maximum is %d", ErrCorrupt, n, limit)
	}
	var err error
	if g.contents, err = bodyread.Read(r, nil, int(n), maxPrealloc); err != nil {
		return greeting{}, err
	}
	if want, got := binary.LittleEndian.Uint32(head[36:]), checksum(head[:36], g.contents); want != got {
		return greeting{}, fmt.Errorf("%w: the hello has checksum %08x, want %08x", ErrCorrupt, got, want)
	}
	return g, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(head, body []byte) uint32 {
	return crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, body)
}
