package archive

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
	"time"
)

// Chain identifies a history of the log up to an entry.
type Chain [16]byte

// String returns the chain as it is in names.
func (c Chain) String() string { return hex.EncodeToString(c[:]) }

// firstChain returns the chain where a history begins: after a base, whose last entry is given.
func firstChain(ensemble, index, term uint64) Chain {
	b := []byte("gozkd archive 1")
	for _, v := range [...]uint64{ensemble, index, term} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	sum := sha256.Sum256(b)
	return Chain(sum[:16])
}

// next returns the chain after an entry.
func (c Chain) next(index uint64, data []byte) Chain {
	h := sha256.New()
	var buf [sha256.Size]byte
	h.Write(binary.BigEndian.AppendUint64(append(buf[:0], c[:]...), index))
	h.Write(data)
	return Chain(h.Sum(buf[:0])[:16])
}

// position is a place in a history: after the entry with an index.
type position struct {
	index uint64
	chain Chain
}

// logName names an object with entries.
type logName struct {
	first, last uint64
	prev, chain Chain
	ms          int64 // of the last batch; 0: none
}

func (n logName) before() position { return position{n.first - 1, n.prev} }
func (n logName) after() position  { return position{n.last, n.chain} }

// maxIndex is the greatest index in a name: others can be added to it.
const maxIndex = math.MaxInt64

// baseName names the folder of a base.
type baseName struct {
	position
	zxid   int64
	ms     int64
	writer string
}

func folder(ensemble uint64) string { return fmt.Sprintf("%016x/", ensemble) }

func (n logName) in(ensemble uint64) string {
	return fmt.Sprintf("%016x/log/%020d-%020d-%v-%v-%013d", ensemble, n.first, n.last, n.prev, n.chain, n.ms)
}

func (n baseName) in(ensemble uint64) string {
	return fmt.Sprintf("%016x/base/%020d-%v-%016x-%013d-%s/", ensemble, n.index, n.chain, n.zxid, n.ms, n.writer)
}

// partName returns the name of a piece within the folder of its base.
func partName(part int, last bool) string {
	if last {
		return fmt.Sprintf("%08d.last", part)
	}
	return fmt.Sprintf("%08d", part)
}

// parseLogName reads the last element of a name.
func parseLogName(s string) (n logName, ok bool) {
	var prev, chain []byte
	_, _ = fmt.Sscanf(s, "%d-%d-%x-%x-%d", &n.first, &n.last, &prev, &chain, &n.ms) // the name tells
	copy(n.prev[:], prev)
	copy(n.chain[:], chain)
	return n, n.first > 0 && n.last >= n.first && n.last <= maxIndex && path.Base(n.in(0)) == s
}

// parseBaseName reads the name of a base's folder, without the path before it.
func parseBaseName(s string) (n baseName, ok bool) {
	var chain []byte
	_, _ = fmt.Sscanf(s, "%d-%x-%x-%d-%s", &n.index, &chain, &n.zxid, &n.ms, &n.writer) // as above
	copy(n.chain[:], chain)
	return n, n.index <= maxIndex && path.Base(n.in(0)) == s
}

// parseEnsemble reads the first element of a name.
func parseEnsemble(s string) (ensemble uint64, ok bool) {
	first, _, _ := strings.Cut(s, "/")
	id, err := strconv.ParseUint(first, 16, 64)
	return id, err == nil && len(first) == 16
}

// parsePart reads the name of a piece of a base.
func parsePart(s string) (part int, last, ok bool) {
	s, last = strings.CutSuffix(s, ".last")
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n), last, err == nil && len(s) == 8
}

// timeOf returns the time of milliseconds in a name; the zero time if there is none.
func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// msOf returns the milliseconds of a time for a name: 0 for the zero time, whose own are negative.
func msOf(t time.Time) int64 { return max(t.UnixMilli(), 0) }

// byName orders objects as the storage lists them; of those that begin with the same entry, the
// longest is first.
func byName(a, b object) int {
	return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(b.last, a.last), strings.Compare(path.Base(a.name), path.Base(b.name)))
}
