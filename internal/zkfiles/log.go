package zkfiles

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/adler32"
	"io"

	"github.com/gozkd/gozkd/internal/bodyread"
	"github.com/gozkd/gozkd/proto/jute"
)

const (
	logMagic  = "ZKLG"
	recordEnd = 'B'
	// logHeaderBytes is the size of a file's header, recordHead of a record's checksum and length.
	logHeaderBytes = 16
	recordHead     = 12
)

// LogReader reads the records of a log file.
type LogReader struct {
	s   *stream
	at  int64 // offset of the last record
	err error
}

// NewLogReader reads the header of a log. A file that ends within its header, or whose header is
// zeros, returns an error that wraps ErrTorn: the server was killed when it had just made the file.
func NewLogReader(r io.Reader) (*LogReader, error) {
	l := &LogReader{s: newStream(r)}
	head, err := l.s.r.Peek(logHeaderBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(head) < logHeaderBytes || unfinishedHeader(head) {
		if len(head) == logHeaderBytes {
			_, _ = l.s.r.Discard(logHeaderBytes) // as many were peeked
			if err := l.onlyZeros(); err != nil {
				return nil, err
			}
		}
		return nil, fmt.Errorf("%w at byte 0: the file has no header", ErrTorn)
	}
	if l.s.header("log", logMagic); l.s.err != nil {
		return nil, l.s.err
	}
	return l, nil
}

// unfinishedHeader reports whether only part of a header was written before preallocated zeros.
func unfinishedHeader(head []byte) bool {
	written := bytes.TrimRight(head, "\x00")
	return len(written) < 8 && bytes.HasPrefix(AppendLogHeader(nil), written)
}

// Offset returns the offset of the record that Next returned last, or of the error.
func (l *LogReader) Offset() int64 { return l.at }

// Next returns the next record, io.EOF after the last one, and otherwise an error that wraps
// ErrTorn or ErrDamaged. An error is final.
func (l *LogReader) Next() (*Record, error) {
	if l.err != nil {
		return nil, l.err
	}
	var r *Record
	l.at = l.s.off
	if r, l.err = l.next(); l.err != nil {
		return nil, l.err
	}
	return r, nil
}

func (l *LogReader) next() (*Record, error) {
	s := l.s
	head, err := s.r.Peek(recordHead)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("at byte %d: %w", l.at, err)
	case len(head) == 0:
		return nil, io.EOF
	case len(head) < recordHead:
		if len(bytes.Trim(head, "\x00")) == 0 {
			return nil, io.EOF
		}
		return nil, l.torn()
	}
	sum, n := binary.BigEndian.Uint64(head), int32(binary.BigEndian.Uint32(head[8:]))
	switch {
	case n == 0: // the preallocated rest, or a head of which only the checksum was written
		_, _ = s.r.Discard(recordHead) // as many were peeked
		s.off += recordHead
		if err := l.onlyZeros(); err != nil {
			return nil, err
		}
		if sum != 0 {
			return nil, l.torn()
		}
		return nil, io.EOF
	case n < 0:
		return nil, l.damaged("a record of %d bytes", n)
	}
	s.take(recordHead, "a record")
	entry, err := bodyread.Read(s.r, nil, int(n), chunk)
	s.off += int64(len(entry))
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, l.incomplete(sum, entry)
	case err != nil:
		return nil, fmt.Errorf("at byte %d: %w", s.off, err)
	}
	end, err := s.r.ReadByte()
	switch {
	case errors.Is(err, io.EOF):
		return nil, l.incomplete(sum, entry)
	case err != nil:
		return nil, fmt.Errorf("at byte %d: %w", l.at, err)
	}
	s.off++
	switch is := uint64(adler32.Checksum(entry)); {
	case end == 0:
		// The rest was never written: it is zeros up to the end of the file.
		if err := l.onlyZeros(); err != nil {
			return nil, err
		}
		return nil, l.incomplete(sum, entry)
	case end != recordEnd:
		return nil, l.damaged("the record does not end with %q but with %#x", recordEnd, end)
	case is != sum:
		return nil, l.damaged("the checksum of the record is %#x, computed is %#x", sum, is)
	}
	r, err := DecodeRecord(entry)
	if err != nil {
		return nil, fmt.Errorf("at byte %d: %w", l.at, err)
	}
	return r, nil
}

func (l *LogReader) torn() error { return fmt.Errorf("%w at byte %d", ErrTorn, l.at) }

func (l *LogReader) damaged(format string, args ...any) error {
	return fmt.Errorf("%w at byte %d: %s", ErrDamaged, l.at, fmt.Sprintf(format, args...))
}

// incomplete returns ErrTorn for a record that was not written to its end, and ErrDamaged if only
// its length is damaged: then the checksum is that of fewer bytes, which a record's end follows.
func (l *LogReader) incomplete(sum uint64, entry []byte) error {
	for a, b, i := uint64(1), uint64(0), 0; i < len(entry); i++ { // the Adler-32 of entry[:i]
		if entry[i] == recordEnd && b<<16|a == sum {
			return l.damaged("the record says it is longer than %d bytes, and its checksum is that of %d", len(entry), i)
		}
		a = (a + uint64(entry[i])) % 65521
		b = (b + a) % 65521
	}
	return l.torn()
}

// onlyZeros reads the rest of the file, which must be zeros.
func (l *LogReader) onlyZeros() error {
	buf := make([]byte, chunk)
	for {
		n, err := l.s.r.Read(buf)
		for i, c := range buf[:n] {
			if c != 0 {
				return l.damaged("the log ends here, but at byte %d it goes on", l.s.off+int64(i))
			}
		}
		l.s.off += int64(n)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("at byte %d: %w", l.s.off, err)
		}
	}
}

// AppendLogHeader appends the header of a log file.
func AppendLogHeader(b []byte) []byte {
	return jute.AppendLong(jute.AppendInt(append(b, logMagic...), fileVersion), 0)
}
