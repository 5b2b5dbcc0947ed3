package zkdata

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/golang/snappy"

	"github.com/gozkd/gozkd/internal/zkfiles"
)

// errUnfinished is wrapped by the error for a snapshot that was not written to its end.
var errUnfinished = errors.New("it was not written to its end")

// openSnapshot opens a snapshot and removes its compression. An unfinished file is an error that
// wraps errUnfinished; of a compressed file only reading shows this. A snappy file has no mark at
// its end: one that was cut between two blocks shows as [zkfiles.ErrEnds].
func openSnapshot(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	in, err := uncompressed(f, path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{in, f}, nil
}

func isSnappy(path string) bool { return strings.HasSuffix(path, ".snappy") }

func uncompressed(f *os.File, path string) (io.Reader, error) {
	switch {
	case strings.HasSuffix(path, ".gz"):
		z, err := gzip.NewReader(bufio.NewReaderSize(f, 1<<16))
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, errUnfinished
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", zkfiles.ErrDamaged, err)
		}
		return &truncation{z}, nil
	case isSnappy(path):
		r, head := bufio.NewReaderSize(f, 1<<16), make([]byte, len(snappyMagic)+8)
		if _, err := io.ReadFull(r, head); err != nil {
			return nil, early(err)
		}
		if !bytes.HasPrefix(head, []byte(snappyMagic)) {
			return nil, fmt.Errorf("%w: it does not begin as a file of snappy-java", zkfiles.ErrDamaged)
		}
		return &snappyReader{r: r}, nil
	}
	last := make([]byte, len(zkfiles.LastBytes))
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if _, err := f.ReadAt(last, max(info.Size()-int64(len(last)), 0)); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if string(last) != zkfiles.LastBytes {
		return nil, errUnfinished
	}
	return f, nil
}

// truncation reports the early end of a compressed file as errUnfinished, and other errors of the
// compression as damage.
type truncation struct{ r io.Reader }

func (t *truncation) Read(b []byte) (int, error) {
	n, err := t.r.Read(b)
	var corrupt interface{ Temporary() bool } // an error of the disk
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = errUnfinished
	case err != nil && !errors.Is(err, io.EOF) && !errors.As(err, &corrupt):
		err = fmt.Errorf("%w: %w", zkfiles.ErrDamaged, err)
	}
	return n, err
}

const (
	snappyMagic = "\x82SNAPPY\x00"
	// maxSnappyBlock bounds a block. ZooKeeper's library writes blocks of 32 KiB.
	maxSnappyBlock = 64 << 20
)

// snappyReader reads what follows the header of a file of snappy-java: blocks with their length.
type snappyReader struct {
	r      *bufio.Reader
	in     []byte
	out    []byte
	offset int
	err    error
}

func (s *snappyReader) Read(b []byte) (int, error) {
	for s.offset == len(s.out) && s.err == nil {
		s.offset, s.out = 0, s.out[:0]
		s.err = s.next()
	}
	n := copy(b, s.out[s.offset:])
	s.offset += n
	if n > 0 {
		return n, nil
	}
	return 0, s.err
}

func (s *snappyReader) next() error {
	var length [4]byte
	if _, err := io.ReadFull(s.r, length[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return io.EOF
		}
		return early(err)
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > maxSnappyBlock {
		return fmt.Errorf("%w: a block of %d bytes", zkfiles.ErrDamaged, n)
	}
	if uint32(cap(s.in)) < n {
		s.in = make([]byte, n)
	}
	s.in = s.in[:n]
	if _, err := io.ReadFull(s.r, s.in); err != nil {
		return early(err)
	}
	if size, err := snappy.DecodedLen(s.in); err != nil || size > maxSnappyBlock {
		return fmt.Errorf("%w: a block that becomes %d bytes: %w", zkfiles.ErrDamaged, size, errors.Join(err))
	}
	out, err := snappy.Decode(s.out[:cap(s.out)], s.in)
	if err != nil {
		return fmt.Errorf("%w: %w", zkfiles.ErrDamaged, err)
	}
	s.out = out
	return nil
}

func early(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errUnfinished
	}
	return err
}
