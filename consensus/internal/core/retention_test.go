package core

import (
	"testing"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// What is not archived stays up to ArchiveBytes, also if that is more than MaxBytes.
func TestCut_ArchiveBeyondMaxBytes(t *testing.T) {
	for _, tc := range []struct {
		what        string
		archive     int
		archived    uint64
		least, most int // bytes
	}{
		{"no archive", 0, 0, 0, 2 << 10},
		{"nothing is archived", 16 << 10, 0, 15 << 10, 16 << 10},
		{"all is archived", 16 << 10, 200, 0, 2 << 10},
	} {
		storage := raft.NewMemoryStorage()
		r := &Retention{
			standing: &standing{storage: storage, applied: 200},
			limits:   RetentionLimits{Bytes: 2 << 10, MaxBytes: 4 << 10, ArchiveBytes: tc.archive, CutEntries: 1, CutBytes: 1},
		}
		for i := range r.applied {
			e := &raftpb.Entry{Index: new(i + 1), Term: new(uint64(1))}
			if err := storage.Append([]*raftpb.Entry{e}); err != nil {
				t.Fatal(err)
			}
			r.note(0)
		}
		r.KeepFrom(tc.archived + 1)
		if err := r.cut(); err != nil {
			t.Fatal(err)
		}
		if got := r.bytes; got < tc.least || got > tc.most {
			t.Errorf("%s: %d bytes stay, want %d to %d", tc.what, got, tc.least, tc.most)
		}
		if first, err := storage.FirstIndex(); err != nil || first != r.applied-uint64(len(r.sizes))+1 {
			t.Errorf("%s: the log begins at %d, %v", tc.what, first, err)
		}
	}
}
