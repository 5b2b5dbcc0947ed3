package consensus

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/gozkd/gozkd/consensus/internal/checkpoint"
)

// A received checkpoint keeps its file until it is installed or discarded. Until then others are
// refused.
func TestTransfer_OneAtATime(t *testing.T) {
	n, err := Open(Config{Dir: t.TempDir(), StateMachine: &list{}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := n.loop.Form(); err != nil {
		t.Fatal(err)
	}
	stream := func() *bytes.Reader {
		var b bytes.Buffer
		meta := n.core.Meta()
		if err := checkpoint.WriteStream(&b, 1, meta.Append(nil), (&list{}).CaptureAll().Range); err != nil {
			t.Fatal(err)
		}
		return bytes.NewReader(b.Bytes())
	}
	if err := n.checkpoints.receive(2, bytes.NewReader(nil)); err == nil {
		t.Fatal("an empty stream is a checkpoint")
	}
	if err := n.checkpoints.receive(2, stream()); err != nil {
		t.Fatal(err)
	}
	for from := range uint64(4) {
		if err := n.checkpoints.receive(from, stream()); !errors.Is(err, errBusy) {
			t.Errorf("a second one, from member %d: %v", from, err)
		}
	}
	file := n.cfg.checkpointPath() + ".from-2"
	if _, err := os.Stat(file); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(n.receive(), n.loop.Turn()); err != nil { // it is no newer than the state, so raft has no use for it
		t.Fatal(err)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file of a useless checkpoint: %v", err)
	}
	if err := n.checkpoints.receive(3, stream()); err != nil {
		t.Errorf("the next one: %v", err)
	}
}
