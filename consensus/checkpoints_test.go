package consensus

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/gozkd/gozkd/consensus/internal/checkpoint"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

// checkpointStream returns the state as a stream of the leader of a term.
func (n *Node) checkpointStream(t *testing.T, term uint64) []byte {
	var b bytes.Buffer
	meta := n.core.Meta()
	if err := checkpoint.WriteStream(&b, term, meta.Append(nil), (&list{}).CaptureAll().Range); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// openFormed returns a node that has formed an ensemble, and does not run. dir is as in Config.
func openFormed(t *testing.T, dir string) *Node {
	t.Helper()
	n, err := Open(Config{Dir: dir, StateMachine: &list{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := n.loop.Form(); err != nil {
		t.Fatal(err)
	}
	return n
}

// A received checkpoint keeps its file until it is installed or discarded. Until then others are
// refused.
func TestTransfer_OneAtATime(t *testing.T) {
	n := openFormed(t, t.TempDir())
	stream := func() io.ReadCloser { return io.NopCloser(bytes.NewReader(n.checkpointStream(t, 1))) }
	if err := n.checkpoints.receive(2, http.NoBody); err == nil {
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

// A leader that stands still in the midst of a checkpoint keeps out no checkpoint of a later
// leader. Without the later checkpoint, there may be no majority for as long as the connection of
// the first one lives.
func TestTransfer_LaterLeaderFirst(t *testing.T) {
	for _, inMemory := range []bool{false, true} {
		dir := t.TempDir()
		if inMemory {
			dir = ""
		}
		n := openFormed(t, dir)
		of := func(term uint64) io.ReadCloser {
			return io.NopCloser(bytes.NewReader(n.checkpointStream(t, term)))
		}
		first, standsStill := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- n.checkpoints.receive(2, first) }()
		whole := n.checkpointStream(t, 5)
		if _, err := standsStill.Write(whole[:len(whole)-1]); err != nil {
			t.Fatal(err)
		}
		for n.checkpoints.received.Load() == nil {
			time.Sleep(time.Millisecond)
		}
		for _, term := range []uint64{4, 5} {
			if err := n.checkpoints.receive(3, of(term)); !errors.Is(err, errBusy) {
				t.Errorf("a checkpoint of the leader of term %d beside one of term 5: %v", term, err)
			}
		}
		later := make(chan error, 1)
		go func() { later <- n.checkpoints.receive(3, of(6)) }()
		var err error
		select {
		case err = <-later:
		case <-watchdog.After(t, 10*time.Second):
			err = errors.Join(errors.New("it waits"), first.Close(), <-later)
		}
		if err != nil {
			t.Errorf("a checkpoint of the leader of term 6 beside one of term 5: %v", err)
		}
		_ = first.Close() // it is closed already, unless the test has failed
		if err := <-ended; err == nil {
			t.Error("the first checkpoint arrived without its end")
		}
		if err := n.checkpoints.receive(1, of(7)); !errors.Is(err, errBusy) {
			t.Errorf("a checkpoint beside one that waits to be installed: %v", err)
		}
		if err := errors.Join(n.receive(), n.loop.Turn()); err != nil {
			t.Fatal(err)
		}
		if err := n.checkpoints.receive(1, of(6)); err != nil {
			t.Errorf("the next one: %v", err)
		}
	}
}
