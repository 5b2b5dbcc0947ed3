package consensus

import (
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
)

func seqOf(log []LogEntry) iter.Seq2[LogEntry, error] {
	return func(yield func(LogEntry, error) bool) {
		for _, e := range log {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// The applied entries, replayed on a checkpoint, give the state of the node, also in their encoded
// form. Entries that are not archived stay in the log after checkpoints and restarts; without an
// archive they do not.
func TestLog_ReplaysToTheSameState(t *testing.T) {
	for _, archive := range []int{0, 1 << 20} {
		dir, base := t.TempDir(), filepath.Join(t.TempDir(), "base.db")
		cfg := Config{Dir: dir, ArchiveBytes: archive, CheckpointRequests: 100, SegmentBytes: 1 << 16, NoSync: true}
		n := open(t, cfg)
		n.put(t, "before")
		saved := <-n.Snapshot()
		held := saved.Held
		if err := held.WriteCheckpoint(base, saved.State, nil); err != nil {
			t.Fatal(err)
		}
		for i := range 3000 {
			n.put(t, fmt.Sprint(i))
		}
		n.close(t)
		n = open(t, cfg)
		n.put(t, "after")
		<-n.Snapshot() // one more turn: the status shows what is applied
		log, err := n.Log(held.Index+1, 1<<30)
		if archive == 0 {
			if !errors.Is(err, ErrCompacted) {
				t.Errorf("without an archive: %d entries, %v", len(log), err)
			}
			n.close(t)
			continue
		}
		n.KeepFrom(0) // nothing is archived yet, as a shipper says before it knows
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range log {
			if log[i], err = DecodeLogEntry(e.Index, slices.Clone(e.Data)); err != nil || log[i].Term != e.Term || !log[i].Time.Equal(e.Time) {
				t.Fatalf("%+v is decoded as %+v, %v", e, log[i], err)
			}
		}
		var sm list
		got, err := ReplayLog(base, seqOf(log), &sm)
		if err != nil || got.Index != log[len(log)-1].Index || got.Checkpoint != held.Index {
			t.Errorf("%+v %v", got, err)
		}
		if want := n.list.all(); !slices.Equal(sm.all(), want) {
			t.Errorf("%d values, the node has %d", len(sm.all()), len(want))
		}
		if _, err := ReplayLog(base, seqOf(log[1:]), &list{}); err == nil {
			t.Error("a missing entry is not noticed")
		}
		if part, err := n.Log(held.Index+1, 1); err != nil || len(part) != 1 {
			t.Errorf("at least one entry: %d, %v", len(part), err)
		}
		if none, err := n.Log(log[len(log)-1].Index+1, 1<<20); err != nil || len(none) != 0 {
			t.Errorf("%d entries after the last one, %v", len(none), err)
		}
		// An entry that is durable here and not committed: a later leader may undo it.
		last := log[len(log)-1]
		undone := &raftpb.Entry{Index: new(last.Index + 1), Term: new(last.Term)}
		if err := n.Node.log.writer.storage.Append([]*raftpb.Entry{undone}); err != nil {
			t.Fatal(err)
		}
		if again, err := n.Log(last.Index, 1<<20); err != nil || len(again) != 1 {
			t.Errorf("%d entries from the last applied one on, %v", len(again), err)
		}
		n.close(t)
	}
}
