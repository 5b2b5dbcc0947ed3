package memnet

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// The bytes of a stream come in order, whatever the sizes of writes and reads, and the window
// bounds what the stream keeps.
func TestStream_Bytes(t *testing.T) {
	size := rapid.OneOf(rapid.IntRange(0, 512), rapid.IntRange(0, 8*512), rapid.IntRange(0, window))
	rapid.Check(t, func(t *rapid.T) {
		s := newStream(link{}, linkState{})
		var want []byte
		next := byte(0)
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				b := make([]byte, size.Draw(t, "size"))
				for i := range b {
					b[i] = next
					if next++; next == 251 { // a prime, so that no two halves of a buffer are the same
						next = 0
					}
				}
				n := s.put(b)
				if n != min(len(b), window-len(want)) {
					t.Fatalf("wrote %d of %d bytes after %d", n, len(b), len(want))
				}
				if want = append(want, b[:n]...); n < len(b) {
					next = b[n]
				}
			},
			"read": func(t *rapid.T) {
				b := make([]byte, size.Draw(t, "size"))
				n := s.take(b)
				if n != min(len(b), len(want)) || !bytes.Equal(b[:n], want[:n]) {
					t.Fatalf("read %d of %d bytes, or wrong bytes", n, len(want))
				}
				want = want[n:]
			},
			"": func(t *rapid.T) {
				if s.buf.Len() != len(want) || s.arrived != len(want) || s.buf.Cap() > 4*window {
					t.Fatalf("%d bytes in %d, want %d", s.buf.Len(), s.buf.Cap(), len(want))
				}
			},
		})
	})
}
