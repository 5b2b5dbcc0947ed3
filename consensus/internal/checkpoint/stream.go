package checkpoint

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/gozkd/gozkd/internal/bodyread"
)

// The format is in docs/reference/formats.md, "Checkpoint stream".

const (
	streamVersion   = 1
	streamBuffer    = 256 << 10
	maxStreamMeta   = 1 << 20
	maxStreamPart   = 512 << 20 // of one key or value
	readAtOnceLimit = 64 << 10  // larger parts are read as they arrive: a length may be a lie
)

// WriteStream writes a checkpoint as a stream. term is passed to the receiver. Pairs whose value is
// nil are left out.
func WriteStream(w io.Writer, term uint64, meta []byte, pairs Pairs) error {
	b := bufio.NewWriterSize(w, streamBuffer)
	head := binary.AppendUvarint([]byte{streamVersion}, term)
	head = append(binary.AppendUvarint(head, uint64(len(meta))), meta...)
	if _, err := b.Write(head); err != nil {
		return err
	}
	var n [2 * binary.MaxVarintLen64]byte
	err := pairs(func(k, v []byte) error {
		if v == nil {
			return nil
		}
		lengths := binary.AppendUvarint(binary.AppendUvarint(n[:0], uint64(len(k))), uint64(len(v)))
		for _, part := range [...][]byte{lengths, k, v} {
			if _, err := b.Write(part); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := b.WriteByte(0); err != nil { // the end: no key is empty
		return err
	}
	return b.Flush()
}

// StreamReader reads a checkpoint from a stream.
type StreamReader struct {
	Term uint64
	Meta []byte

	r *bufio.Reader
}

// ReadStream reads a stream up to its first pair.
func ReadStream(stream io.Reader) (*StreamReader, error) {
	s := &StreamReader{r: bufio.NewReaderSize(stream, streamBuffer)}
	version, err := s.r.ReadByte()
	if err == nil && version != streamVersion {
		err = fmt.Errorf("checkpoint stream: version %d is unknown, this program reads version %d; upgrade this server",
			version, streamVersion)
	}
	if err != nil {
		return nil, err
	}
	if s.Term, err = binary.ReadUvarint(s.r); err != nil {
		return nil, err
	}
	n, err := binary.ReadUvarint(s.r)
	if err != nil {
		return nil, err
	}
	s.Meta, err = s.part(n, maxStreamMeta)
	return s, err
}

func (s *StreamReader) part(n, limit uint64) ([]byte, error) {
	if n > limit {
		return nil, fmt.Errorf("checkpoint stream: a part has %d bytes, at most %d are allowed", n, limit)
	}
	return bodyread.Read(s.r, nil, int(n), readAtOnceLimit)
}

// Range calls visit for each pair of the stream, as [Pairs] does, and must be called at most once.
// Range returns nil only after the whole stream was read.
func (s *StreamReader) Range(visit func(key, value []byte) error) error {
	for {
		n, err := binary.ReadUvarint(s.r)
		if err == nil && n == 0 {
			switch _, err = s.r.ReadByte(); {
			case err == nil:
				return errors.New("checkpoint stream: bytes follow its end")
			case !errors.Is(err, io.EOF):
				return err
			}
			return nil
		}
		k, v, err := s.pair(n, err)
		if err != nil {
			return bodyread.Within(err)
		}
		if err := visit(k, v); err != nil {
			return err
		}
	}
}

// pair reads a pair whose key has nk bytes, unless err is set.
func (s *StreamReader) pair(nk uint64, err error) (k, v []byte, _ error) {
	var nv uint64
	if err == nil {
		nv, err = binary.ReadUvarint(s.r)
	}
	if err == nil {
		k, err = s.part(nk, maxStreamPart)
	}
	if err == nil {
		v, err = s.part(nv, maxStreamPart)
	}
	return k, v, err
}
