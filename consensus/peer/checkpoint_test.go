package peer

import (
	"bytes"
	"io"
	"testing"
)

func TestCheckpointArrives(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		var got bytes.Buffer
		a := w.start(t, 1)
		b := w.start(t, 2, func(m *member, cfg *Config) {
			m.checkpoint = func(from uint64, r io.Reader) error { _, err := io.Copy(&got, r); return err }
		})
		know(a, b)
		want := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
		if err := a.SendCheckpoint(t.Context(), 2, func(w io.Writer) error { _, err := w.Write(want); return err }); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Fatalf("%d bytes arrived, not the %d that were sent", got.Len(), len(want))
		}
	})
}
