package recipes

import (
	"bytes"
	"encoding/binary"
	"net"
	"testing"
	"time"
)

type clockOnly struct{}

func (clockOnly) now() time.Duration                                { return 0 }
func (clockOnly) attached(int64, time.Duration, time.Duration) bool { return true }

// recording is a connection that keeps what is written.
type recording struct {
	net.Conn
	written bytes.Buffer
}

func (r *recording) Write(b []byte) (int, error) { return r.written.Write(b) }

// TestWire_SetWatches: the watches that are set again fire for all that has happened since what was seen when the connection was made. While it
// collects them, go-zookeeper may have an answer of the new connection already, and says that one's zxid.
func TestWire_SetWatches(t *testing.T) {
	frame := func(fields ...uint64) []byte { // of 4 bytes each, but for the zxid
		b := []byte{0, 0, 0, 40}
		for i, f := range fields {
			if i == len(fields)-1 {
				b = binary.BigEndian.AppendUint64(b, f)
			} else {
				b = binary.BigEndian.AppendUint32(b, uint32(f))
			}
		}
		return append(b, "the rest of it"...)
	}
	const getData, setWatches = 4, 101
	r := &recording{}
	w := &wire{Conn: r, attach: clockOnly{}}
	for _, f := range []struct{ written, want []byte }{
		{frame(0, 0x70), frame(0, 0x70)}, // the handshake: protocol version, last zxid seen
		{frame(1, getData, 0x90), frame(1, getData, 0x90)},
		{frame(2, setWatches, 0x90), frame(2, setWatches, 0x70)},
		{[]byte{0, 0, 0, 8, 0, 0, 0, 3, 0, 0, 0, setWatches}, []byte{0, 0, 0, 8, 0, 0, 0, 3, 0, 0, 0, setWatches}},
	} {
		r.written.Reset()
		before := bytes.Clone(f.written)
		if n, err := w.Write(f.written); n != len(f.written) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if !bytes.Equal(r.written.Bytes(), f.want) || !bytes.Equal(f.written, before) {
			t.Errorf("% x\nwritten % x\nwant    % x", before, r.written.Bytes(), f.want)
		}
	}
}
