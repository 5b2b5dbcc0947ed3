package unpack

import (
	"bytes"
	"errors"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func pack(t testing.TB, b []byte) []byte {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(b, nil)
}

func TestZstd(t *testing.T) {
	want := bytes.Repeat([]byte("znode "), 1000)
	packed := pack(t, want)
	if got, err := Zstd(bytes.NewReader(packed), int64(len(want))); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %d bytes, error %v", len(got), err)
	}
	if _, err := Zstd(bytes.NewReader(packed), int64(len(want))-1); !errors.Is(err, ErrTooLarge) {
		t.Errorf("one byte over the limit: error %v", err)
	}
	bomb := pack(t, make([]byte, 64<<20))
	if _, err := Zstd(bytes.NewReader(bomb), 4<<20); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%d bytes that become 64 MiB: error %v", len(bomb), err)
	}
	for n := range len(packed) {
		if _, err := Zstd(bytes.NewReader(packed[:n]), 1<<20); err == nil && n > 0 {
			t.Errorf("the first %d of %d bytes: no error", n, len(packed))
		}
	}
	if _, err := Zstd(bytes.NewReader([]byte("no frame")), 1<<20); err == nil {
		t.Error("text: no error")
	}
	// A frame that asks for a window of 2 GiB.
	if _, err := Zstd(bytes.NewReader([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0xa8, 1, 0, 0}), 1<<20); err == nil {
		t.Error("a window of 2 GiB: no error")
	}
}
