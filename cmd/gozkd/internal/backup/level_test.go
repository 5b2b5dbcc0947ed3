package backup

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/replica"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
)

// raised is a state machine that tells when the feature level is one too high.
type raised struct {
	replica.Replica
	reached chan struct{}
}

func (r *raised) Apply(batches []consensus.Batch) {
	r.Replica.Apply(batches)
	if batches[len(batches)-1].Level == consensus.Level4+1 {
		close(r.reached)
	}
}

// The data of a later version is neither damaged nor to be used in part: no command takes the
// checkpoint alone, or recommends that.
func TestCommands_RefuseALaterLevel(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	sm := &raised{replica.Replica{Tree: datatree.New(datatree.Options{})}, make(chan struct{})}
	n, err := consensus.Open(consensus.Config{Dir: dir, StateMachine: sm, Levels: consensus.LevelRange{Min: consensus.Level4, Max: consensus.Level4 + 1}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }() // stopped by cancel, awaited below
	<-sm.reached
	cancel()
	if err := <-done; !errors.Is(err, consensus.ErrClosed) {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{"inspect": {dir}, "restore": {"--from", dir, "--data-dir", filepath.Join(t.TempDir(), "new")}} {
		main := inspect
		if name == "restore" {
			main = Restore
		}
		status, stdout, stderr := run(t, main, args...)
		if status == 0 || !strings.Contains(stderr, "has level 5, this program supports 4: start a version of gozkd that supports level 5") ||
			strings.Contains(stdout+stderr, "alone") {
			t.Errorf("%s: %d\n%s%s", name, status, stdout, stderr)
		}
	}
}
