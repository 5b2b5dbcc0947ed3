package archive

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/flate"

	"github.com/gozkd/gozkd/consensus"
)

const (
	magic      = "gozkdARC"
	version    = 1
	kindLog    = 1
	kindBase   = 2
	headerSize = 84
	// pieceBytes is the size of a base's pieces, and of an object's entries unless one is larger.
	pieceBytes = 8 << 20
	// maxBody bounds an inflated object: an entry of the largest request, and what is around it.
	maxBody = 320 << 20
)

// ErrCorrupt is wrapped by errors about objects whose content differs from what was written.
var ErrCorrupt = errors.New("archive: damaged object")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header is what an object has between its version and its size, in the order of its bytes.
type header struct {
	Kind        uint32
	Ensemble    uint64
	First, Last uint64
	Prev, Chain Chain
}

// encode returns the bytes of an object.
func (h header) encode(body []byte) []byte {
	b := append(make([]byte, 0, headerSize+len(body)/2), magic...)
	b = binary.LittleEndian.AppendUint32(b, version)
	b, _ = binary.Append(b, binary.LittleEndian, h) // all fields have a size
	b = binary.LittleEndian.AppendUint64(b, uint64(len(body)))
	out := bytes.NewBuffer(append(b, 0, 0, 0, 0))
	w, _ := flate.NewWriter(out, flate.BestSpeed) // the level is valid
	_, err := w.Write(body)
	if err := errors.Join(err, w.Close()); err != nil {
		panic(fmt.Sprintf("archive: %v", err)) // a buffer takes everything
	}
	b = out.Bytes()
	binary.LittleEndian.PutUint32(b[headerSize-4:], checksum(b))
	return b
}

func checksum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:headerSize-4], castagnoli), castagnoli, b[headerSize:])
}

// decode reads the bytes of an object, whose header must be the one that its name demands.
func (h header) decode(b []byte) (body []byte, err error) {
	if len(b) < headerSize || string(b[:8]) != magic {
		return nil, fmt.Errorf("%w: it does not begin as an object of an archive does", ErrCorrupt)
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != version {
		return nil, fmt.Errorf("archive: the object has version %d, this program knows %d: use a later version of gozkd", v, version)
	}
	if binary.LittleEndian.Uint32(b[headerSize-4:]) != checksum(b) {
		return nil, fmt.Errorf("%w: checksum mismatch", ErrCorrupt)
	}
	var got header
	if _, err := binary.Decode(b[12:], binary.LittleEndian, &got); err != nil || got != h {
		return nil, fmt.Errorf("%w: it is another object than its name says", ErrCorrupt)
	}
	size := binary.LittleEndian.Uint64(b[72:])
	if size > maxBody {
		return nil, fmt.Errorf("%w: a body of %d bytes", ErrCorrupt, size)
	}
	r := flate.NewReader(bytes.NewReader(b[headerSize:]))
	body, err = io.ReadAll(io.LimitReader(r, int64(size)+1))
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if uint64(len(body)) != size {
		return nil, fmt.Errorf("%w: its body has another size than its header says", ErrCorrupt)
	}
	return body, nil
}

// encodeLog returns the object with entries, the first of which follows a position.
func encodeLog(ensemble uint64, from position, entries []consensus.LogEntry) (logName, []byte) {
	n := logName{first: from.index + 1, last: from.index, prev: from.chain, chain: from.chain}
	size := 0
	for _, e := range entries {
		size += binary.MaxVarintLen32 + len(e.Data)
	}
	body := make([]byte, 0, size)
	for _, e := range entries {
		n.last++
		n.chain, n.ms = n.chain.next(n.last, e.Data), max(n.ms, msOf(e.Time))
		body = append(binary.AppendUvarint(body, uint64(len(e.Data))), e.Data...)
	}
	return n, header{kindLog, ensemble, n.first, n.last, n.prev, n.chain}.encode(body)
}

// decodeLog returns the entries of an object. They are those that its chain stands for.
func decodeLog(ensemble uint64, n logName, b []byte) ([]consensus.LogEntry, error) {
	body, err := header{kindLog, ensemble, n.first, n.last, n.prev, n.chain}.decode(b)
	if err != nil {
		return nil, err
	}
	var entries []consensus.LogEntry
	chain := n.prev
	for index := n.first; len(body) > 0; index++ {
		size, k := binary.Uvarint(body)
		if k <= 0 || size > uint64(len(body)-k) {
			return nil, fmt.Errorf("%w: entry %d", ErrCorrupt, index)
		}
		e, err := consensus.DecodeLogEntry(index, body[k:k+int(size):k+int(size)])
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		body, chain = body[k+int(size):], chain.next(index, e.Data)
		entries = append(entries, e)
	}
	if chain != n.chain || uint64(len(entries)) != n.last-n.first+1 {
		return nil, fmt.Errorf("%w: its entries are others than its name says", ErrCorrupt)
	}
	return entries, nil
}

// readLog returns the entries of an object, whose bytes get returns.
func readLog(
	ctx context.Context, get func(context.Context, string) ([]byte, error), ensemble uint64, o object,
) ([]consensus.LogEntry, error) {
	b, err := get(ctx, o.name)
	if err != nil {
		return nil, err
	}
	entries, err := decodeLog(ensemble, o.logName, b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.name, err)
	}
	return entries, nil
}

// partHeader returns the header of a piece of a base.
func partHeader(ensemble uint64, n baseName, part int) header {
	return header{Kind: kindBase, Ensemble: ensemble, First: n.index, Last: uint64(part), Chain: n.chain}
}
