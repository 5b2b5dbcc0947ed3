package zkfiles

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/adler32"
	"io"

	"github.com/gozkd/gozkd/internal/bodyread"
	"github.com/gozkd/gozkd/proto/jute"
)

// stream reads jute primitives and computes the checksum of all bytes so far. The first error is
// kept, and every later read returns the zero value.
type stream struct {
	r       *bufio.Reader
	sum     hash.Hash32
	off     int64
	err     error
	scratch []byte
}

// newStream returns a stream over r. If r is a *bufio.Reader, the stream consumes nothing after
// the bytes that it has returned.
func newStream(r io.Reader) *stream {
	b, ok := r.(*bufio.Reader)
	if !ok {
		b = bufio.NewReaderSize(r, 1<<16)
	}
	return &stream{r: b, sum: adler32.New()}
}

// chunk bounds how much is allocated before the bytes for it have arrived.
const chunk = 1 << 16

// header reads the header of a file, which begins with the letters of magic.
func (s *stream) header(file, magic string) {
	if is := uint32(s.int("the header")); is != binary.BigEndian.Uint32([]byte(magic)) {
		s.fail("a %s begins with %s, this file with %#08x", file, magic, is)
	}
	if version := s.int("the header"); version != fileVersion {
		s.fail("the %s has format version %d; known is %d", file, version, fileVersion)
	}
	s.long("the header") // the database's id
}

func (s *stream) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("%w at byte %d: %s", ErrDamaged, s.off, fmt.Sprintf(format, args...))
	}
}

// failed turns an error of the reader into that of the stream: an early end is damage, and anything
// else is an error of the disk or the network.
func (s *stream) failed(err error, what string) {
	if s.err != nil {
		return
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		s.err = fmt.Errorf("%w at byte %d: %w within %s", ErrDamaged, s.off, ErrEnds, what)
		return
	}
	s.err = fmt.Errorf("at byte %d: %w", s.off, err)
}

// take reads n bytes into the scratch buffer, which the next read overwrites.
func (s *stream) take(n int, what string) []byte {
	if s.err != nil {
		return nil
	}
	b, err := bodyread.Read(s.r, s.scratch, n, chunk)
	if err != nil {
		s.failed(err, what)
		return nil
	}
	s.scratch = b
	_, _ = s.sum.Write(b) // never fails
	s.off += int64(n)
	if cap(b) > 1<<20 { // one large value must not keep its memory
		s.scratch = nil
	}
	return b
}

func (s *stream) int(what string) int32 {
	d := jute.NewDecoder(s.take(4, what))
	return d.Int()
}

func (s *stream) long(what string) int64 {
	d := jute.NewDecoder(s.take(8, what))
	return d.Long()
}

// buffer reads a buffer: nil for null. The result is valid until the next read.
func (s *stream) buffer(what string) []byte {
	n := s.int("the length of " + what)
	switch {
	case s.err != nil || n == -1:
		return nil
	case n < 0:
		s.fail("%s has length %d", what, n)
		return nil
	case n == 0:
		return []byte{}
	}
	return s.take(int(n), what)
}

func (s *stream) text(what string) string { return jute.Text(s.buffer(what)) }

// count reads the number of a vector's elements. Only their bytes prove it: read them one by one.
func (s *stream) count(what string) int {
	n := s.int("the number of " + what)
	if n < 0 && s.err == nil && n != -1 {
		s.fail("there are %d %s", n, what)
	}
	return max(int(n), 0)
}
