package lastzxid

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// scripted is a connection that returns scripted bytes, in pieces, and records all writes.
type scripted struct {
	net.Conn
	say     io.Reader
	written bytes.Buffer
}

func (s *scripted) Read(b []byte) (int, error)  { return s.say.Read(b) }
func (s *scripted) Write(b []byte) (int, error) { return s.written.Write(b) }

// frame encodes the fields in 4 bytes each, or 8 for an int64, after the length.
func frame(fields ...any) []byte {
	b := make([]byte, 4)
	for _, f := range fields {
		switch f := f.(type) {
		case int:
			b = binary.BigEndian.AppendUint32(b, uint32(f))
		case int64:
			b = binary.BigEndian.AppendUint64(b, uint64(f))
		case string:
			b = append(b, f...)
		}
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

func handshake(zxid, session int64) []byte {
	return frame(0, zxid, 10_000, session, 16, "sixteen bytes...")
}

func TestConn(t *testing.T) {
	const events = -1
	seen := &Seen{}
	answers := func(answered ...[]byte) (said, want []byte) {
		hello := frame(0, 10_000, int64(7), 16, "sixteen bytes...")
		said, want = hello, hello
		for i := 0; i < len(answered); i += 2 {
			said, want = append(bytes.Clone(said), answered[i]...), append(bytes.Clone(want), answered[i+1]...)
		}
		return said, want
	}
	for i, tc := range []struct {
		requests, answers [][]byte // in pairs: what is written, and what arrives
	}{
		{
			[][]byte{handshake(0, 0), handshake(0, 0), frame(1, 4, "get"), frame(1, 4, "get")},
			[][]byte{
				frame(1, int64(0x70), 0, "data"), frame(1, int64(0), 0, "data"),
				frame(-1, int64(events), 0, "event"), frame(-1, int64(events), 0, "event"),
				frame(2, int64(0x71), -101), frame(2, int64(0), -101),
			},
		},
		{ // go-zookeeper sends 0: it has seen nothing
			[][]byte{handshake(0, 7), handshake(0x71, 7), frame(3, 4, "get"), frame(3, 4, "get"), frame(4, opSetWatches, int64(0), "watches"), frame(4, opSetWatches, int64(0x71), "watches")},
			[][]byte{frame(3, int64(0x90), 0), frame(3, int64(0), 0), frame("short"), frame("short")},
		},
		{ // lost before the watches were set
			[][]byte{handshake(0, 7), handshake(0x90, 7), frame(5, opSetWatches, int64(0), "watches"), frame(5, opSetWatches, int64(0x71), "watches")},
			[][]byte{frame(6, int64(0x91), 0), frame(6, int64(0), 0), frame(5, int64(0x92), 0), frame(5, int64(0), 0)},
		},
		{ // with the watches set
			[][]byte{handshake(0, 7), handshake(0x92, 7), frame(7, opSetWatches, int64(0)), frame(7, opSetWatches, int64(0x92)), frame(8, opSetWatches), frame(8, opSetWatches)},
			nil,
		},
		{[][]byte{handshake(0, 0), handshake(0, 0)}, nil}, // a new session
		{[][]byte{handshake(0, 7), handshake(0, 7)}, nil},
	} {
		said, want := answers(tc.answers...)
		s := &scripted{say: iotest.HalfReader(bytes.NewReader(said))}
		c := NewConn(s, seen)
		for j := 0; j < len(tc.requests); j += 2 {
			s.written.Reset()
			before := bytes.Clone(tc.requests[j])
			if n, err := c.Write(tc.requests[j]); n != len(before) || err != nil || !bytes.Equal(before, tc.requests[j]) {
				t.Errorf("%d: %d, %v, wrote % x", i, n, err, tc.requests[j])
			}
			if !bytes.Equal(s.written.Bytes(), tc.requests[j+1]) {
				t.Errorf("%d: sent % x, want % x", i, s.written.Bytes(), tc.requests[j+1])
			}
		}
		if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d: % x, %v\nwant % x", i, got, err, want)
		}
	}
}

// TestConn_PassesOn checks that all bytes of a server arrive, in whatever pieces, except for the
// zxids of replies.
func TestConn_PassesOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		said := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "said")
		for i := range said { // plausible lengths
			if i%7 < 3 {
				said[i] = 0
			}
		}
		size := rapid.IntRange(1, 50).Draw(t, "size")
		c := NewConn(&scripted{say: bytes.NewReader(said)}, &Seen{})
		var got []byte
		b := make([]byte, size)
		for {
			n, err := c.Read(b)
			got = append(got, b[:n]...)
			if err != nil {
				break
			}
		}
		if len(got) > len(said) || len(said)-len(got) >= replyHeader { // a header that is cut is not passed on
			t.Fatalf("%d of %d bytes", len(got), len(said))
		}
		for i := range got {
			if got[i] != said[i] && got[i] != 0 {
				t.Fatalf("byte %d is %x, not %x", i, got[i], said[i])
			}
		}
	})
}
