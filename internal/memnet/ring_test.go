package memnet

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// A ring behaves like a queue, wherever its bytes are when it wraps around or grows.
func TestRing_Model(t *testing.T) {
	size := rapid.OneOf(rapid.IntRange(0, minRing), rapid.IntRange(0, 8*minRing))
	rapid.Check(t, func(t *rapid.T) {
		var r ring
		var want []byte
		next := byte(0)
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				b := make([]byte, min(size.Draw(t, "size"), window-len(want)))
				for i := range b {
					b[i] = next
					if next++; next == 251 { // a prime, so that no two halves of a ring are the same
						next = 0
					}
				}
				r.write(b)
				want = append(want, b...)
			},
			"read": func(t *rapid.T) {
				b := make([]byte, size.Draw(t, "size"))
				n := r.read(b)
				if n != min(len(b), len(want)) || !bytes.Equal(b[:n], want[:n]) {
					t.Fatalf("read %d of %d bytes, or wrong bytes", n, len(want))
				}
				want = want[n:]
			},
			"": func(t *rapid.T) {
				if r.len() != len(want) || len(r.buf) > window {
					t.Fatalf("%d bytes in %d, want %d", r.len(), len(r.buf), len(want))
				}
			},
		})
	})
}
