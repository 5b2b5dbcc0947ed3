package core

import (
	"slices"
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
			raftState: &raftState{storage: storage, applied: 200},
			limits:    RetentionLimits{Bytes: 2 << 10, MaxBytes: 4 << 10, ArchiveBytes: tc.archive, CutEntries: 1, CutBytes: 1},
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

// What is kept of a hundred applied entries of one size, by what needs them.
func TestCut_Keeps(t *testing.T) {
	const n, soft, hard, archive, step = 100, 10, 20, 40, 5
	for _, tc := range []struct {
		what string
		do   func(r *Retention)
		want uint64 // entries
	}{
		{"a follower", nil, soft},
		{"a sole voter", func(r *Retention) { r.conf = &raftpb.ConfState{Voters: []uint64{1}} }, 0},
		{"a sole voter with a learner", func(r *Retention) { r.conf = &raftpb.ConfState{Voters: []uint64{1}, Learners: []uint64{2}} }, soft},
		{"a sole voter after others", func(r *Retention) { r.conf = &raftpb.ConfState{Voters: []uint64{1}, VotersOutgoing: []uint64{2}} }, soft},
		{"a transfer is under way", func(r *Retention) { r.TransferStarted(2, n-15) }, soft},
		{"a leader's transfer", func(r *Retention) { r.role = raft.StateLeader; r.TransferStarted(2, n-15) }, 15},
		{"a leader's transfer of little", func(r *Retention) { r.role = raft.StateLeader; r.TransferStarted(2, n-5) }, soft},
		{"a leader's transfer of too much", func(r *Retention) { r.role = raft.StateLeader; r.TransferStarted(2, n-50) }, hard},
		{"an archive that has nothing", func(r *Retention) { r.limits.ArchiveBytes = archive * entryBytes }, archive},
		{"an archive that has a part", func(r *Retention) { r.limits.ArchiveBytes = archive * entryBytes; r.KeepFrom(n - 29) }, 30},
		{"an archive that has most", func(r *Retention) { r.limits.ArchiveBytes = archive * entryBytes; r.KeepFrom(n - 3) }, soft},
		{"the step is just reached", func(r *Retention) { r.limits.Bytes = (n - step) * entryBytes; r.limits.MaxBytes = n * entryBytes }, n - step},
		{"the step is not reached", func(r *Retention) {
			r.limits.Bytes, r.limits.MaxBytes = (n-step+1)*entryBytes, n*entryBytes
		}, n},
		{"the step in bytes is reached", func(r *Retention) {
			r.limits.Bytes, r.limits.MaxBytes, r.limits.CutBytes = (n-3)*entryBytes, n*entryBytes, 3*entryBytes
		}, n - 3},
		{"the step in bytes is not reached", func(r *Retention) {
			r.limits.Bytes, r.limits.MaxBytes, r.limits.CutBytes = (n-2)*entryBytes, n*entryBytes, 3*entryBytes
		}, n},
		{"only the first two go", func(r *Retention) {
			r.limits.Bytes, r.limits.MaxBytes, r.limits.CutEntries = (n-2)*entryBytes, n*entryBytes, 2
		}, n - 2},
		{"it is not time to look", func(r *Retention) { r.nextLen, r.nextBytes = n+1, n*entryBytes+1 }, n},
		{"it is time to look at the entries", func(r *Retention) { r.nextLen, r.nextBytes = n, n*entryBytes+1 }, soft},
		{"it is time to look at the bytes", func(r *Retention) { r.nextLen, r.nextBytes = n+1, n*entryBytes }, soft},
	} {
		w := newWorld(t, 1, 3)
		r := w.members[0].core.Retention
		r.reset()
		r.applied, r.nextLen, r.nextBytes = n, 0, 0
		r.limits = RetentionLimits{Bytes: soft * entryBytes, MaxBytes: hard * entryBytes, CutEntries: step, CutBytes: 1 << 30}
		for i := uint64(2); i <= n+1; i++ { // one is not applied, the first is the initial state
			if err := r.storage.Append([]*raftpb.Entry{{Index: &i, Term: new(uint64(1))}}); err != nil {
				t.Fatal(err)
			}
		}
		for range n {
			r.note(0)
		}
		if tc.do != nil {
			tc.do(r)
		}
		looks := r.nextLen <= n || r.nextBytes <= n*entryBytes
		if err := r.cut(); err != nil {
			t.Fatal(err)
		}
		first, err := r.storage.FirstIndex()
		if uint64(len(r.sizes)) != tc.want || uint64(r.bytes) != tc.want*entryBytes || err != nil || first != max(2, n+1-tc.want) {
			t.Errorf("%s: %d entries stay, of %d bytes, and the log begins at %d, %v; want %d", tc.what, len(r.sizes), r.bytes, first, err, tc.want)
		}
		if looks && (r.nextLen != len(r.sizes)+r.limits.CutEntries || r.nextBytes != r.bytes+r.limits.CutBytes) {
			t.Errorf("%s: it looks again at %d entries, %d bytes", tc.what, r.nextLen, r.nextBytes)
		}
		r.reset() // the log in memory may begin later than what is noted
		if r.nextLen != r.limits.CutEntries || r.nextBytes != r.limits.CutBytes {
			t.Errorf("%s: after a reset it looks again at %d entries, %d bytes", tc.what, r.nextLen, r.nextBytes)
		}
		for range n {
			r.note(0)
		}
		r.nextLen, r.role = 0, raft.StateFollower
		r.limits = RetentionLimits{Bytes: 50 * entryBytes, MaxBytes: 1 << 30, CutEntries: step, CutBytes: 1 << 30}
		if err := r.cut(); err != nil || tc.want > 0 && len(r.sizes) != 50 {
			t.Errorf("%s: %v, %d entries stay", tc.what, err, len(r.sizes))
		}
	}
}

// The log begins with the applied entries that are noted at the start, and the archive's index
// never goes back.
func TestRetention_Notes(t *testing.T) {
	for applied, want := range map[uint64]int{0: 0, 1: 1, 5: 5, 8: 8} {
		r := &Retention{raftState: &raftState{storage: raft.NewMemoryStorage(), applied: applied}, limits: RetentionLimits{CutEntries: 7, CutBytes: 9}}
		for i := range uint64(8) {
			if err := r.storage.Append([]*raftpb.Entry{{Index: new(i + 1), Term: new(uint64(1)), Data: make([]byte, i)}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.load(); err != nil || len(r.sizes) != want || r.bytes != want*entryBytes+want*(want-1)/2 || r.nextLen != 7 || r.nextBytes != 9 {
			t.Errorf("up to %d: %d entries of %d bytes, next at %d and %d, %v", applied, len(r.sizes), r.bytes, r.nextLen, r.nextBytes, err)
		}
	}
	r := &Retention{}
	for i, tc := range []struct{ from, want uint64 }{{0, 0}, {1, 0}, {5, 4}, {3, 4}, {0, 4}, {6, 5}} {
		if r.KeepFrom(tc.from); r.archived != tc.want {
			t.Errorf("step %d: the archive has entries up to %d, want %d", i, r.archived, tc.want)
		}
	}
	if r.Archives() {
		t.Error("it archives without a bound")
	}
	if r.limits.ArchiveBytes = 1; !r.Archives() {
		t.Error("it does not archive")
	}
	const mb = 1 << 20
	for memory, want := range map[int64]RetentionLimits{
		1 << 40:  {Bytes: 16 * mb, MaxBytes: 256 * mb, CutEntries: 1024, CutBytes: 4 * mb, InFlight: 32 * mb},
		128 * mb: {Bytes: 4 * mb, MaxBytes: 16 * mb, CutEntries: 1024, CutBytes: mb, InFlight: 2 * mb},
		32 * mb:  {Bytes: mb, MaxBytes: 4 * mb, CutEntries: 1024, CutBytes: mb / 4, InFlight: mb},
	} {
		if got := DefaultRetention(memory); got != want {
			t.Errorf("of %d bytes: %+v, want %+v", memory, got, want)
		}
	}
}

// A transfer keeps the log until it has failed, or its member has had the time to install the
// checkpoint. A leader keeps what its active members lack.
func TestRetention_NeededFrom(t *testing.T) {
	l, others := newLeader(t, 4, 1)
	r := l.core.Retention
	applied := r.applied
	expect := func(what string, want uint64) {
		t.Helper()
		if got := r.neededFrom(); got != want {
			t.Errorf("%s: the log is needed after %d, want %d", what, got, want)
		}
	}
	expect("all have all", applied)
	r.applied += 9
	expect("all lack something", applied)
	r.applied = applied
	r.TransferStarted(others[0], 1)
	expect("a transfer", 1)
	for range 2 * pinTicks {
		r.tick()
	}
	expect("a transfer takes long", 1)
	if !r.serving() {
		t.Error("a transfer does not count")
	}
	r.TransferEnded(others[0], false)
	expect("it has failed", applied)
	r.TransferEnded(others[0], true)
	expect("it was not begun", applied)
	r.TransferStarted(others[0], 1)
	r.TransferEnded(others[0], true)
	for range pinTicks - 1 {
		r.tick()
	}
	expect("it has ended not long ago", 1)
	r.tick()
	expect("it has ended long ago", applied)
	if r.serving() {
		t.Error("a transfer that has ended counts")
	}
	l.forgets(others)
	r.applied += 9
	expect("nobody is active", r.applied)
	const added = 9
	l.core.raft.ApplyConfChange(&raftpb.ConfChange{Type: raftpb.ConfChangeAddLearnerNode.Enum(), NodeId: new(uint64(added))})
	expect("what a member has is not known", r.applied)
	l.hears(1, added)
	expect("a member has only the initial state", 1)
}

// A member that is 8 MB behind catches up by entries, also with 64 MiB, if it is connected, even if
// raft has not heard from it for an election timeout. One without a connection gets a checkpoint.
func TestRetention_SlowMemberCatchesUp(t *testing.T) {
	const request, n = 500_000, 16
	for _, connected := range []bool{true, false} {
		w := newWorld(t, 1, 3)
		for _, m := range w.members {
			m.memory = 64 << 20
			m.start()
		}
		w.calm(func() bool { l := w.leader(); return l != nil && l.core.Current() && w.equal() })
		l := w.leader()
		slow, other := w.members[l.id%3].id, w.members[(l.id+1)%3].id
		if l.core.Unreachable(slow, false); connected {
			l.core.Reachable(slow)
		}
		match := l.core.applied
		for range n {
			l.forgets([]uint64{other})
			l.core.Propose(make([]byte, request), nil)
			w.nowMs += batchIntervalMs
			for range 2 { // the second is when it is committed
				out, err := l.core.Ready(w.nowMs)
				if err != nil {
					t.Fatal(err)
				}
				l.queue = append(l.queue, out.Appends...)
				l.write(len(l.queue))
				l.hears(l.core.last, other)
			}
		}
		l.hears(match, slow)
		out, err := l.core.Ready(w.nowMs)
		if checkpoint := slices.Contains(out.NeedCheckpoint, slow); checkpoint == connected || err != nil {
			t.Errorf("connected: %v; a checkpoint is sent: %v, %v", connected, checkpoint, err)
		}
		if entries := slices.ContainsFunc(out.Messages, func(m Message) bool {
			return m.To == slow && m.Raft != nil && len(m.Raft.GetEntries()) > 0 && m.Raft.GetIndex() == match
		}); entries != connected || l.core.applied-match < n-1 {
			t.Errorf("connected: %v; entries are sent: %v, %d were applied", connected, entries, l.core.applied-match)
		}
	}
}

// With little memory a leader sends little to a member that does not answer, and goes on when it
// answers.
func TestRetention_InFlight(t *testing.T) {
	const request = 400_000
	for memory, want := range map[int64]int{32 << 20: 3, 128 << 20: 6, 1 << 40: maxInFlight} {
		w := newWorld(t, 1, 3)
		for _, m := range w.members {
			m.memory = memory
			m.start()
		}
		w.calm(func() bool { l := w.leader(); return l != nil && l.core.Current() && w.equal() })
		l := w.leader()
		silent := w.members[l.id%3].id
		sent := func(messages []Message) (n int) {
			for _, m := range messages {
				if m.To == silent && m.Raft != nil {
					n += len(m.Raft.GetEntries())
				}
			}
			return n
		}
		last := l.core.last
		for range maxInFlight {
			l.core.Propose(make([]byte, request), nil)
			l.pump()
			w.nowMs += batchIntervalMs
		}
		if n := sent(w.net); n != want {
			t.Errorf("with %d MiB: %d of %d entries are on their way, want %d", memory>>20, n, maxInFlight, want)
		}
		l.hears(last+uint64(want), silent)
		out, err := l.core.Ready(w.nowMs)
		if n, most := sent(out.Messages), DefaultRetention(memory).InFlight+maxBatchBytes; err != nil || n < min(1, maxInFlight-want) || n*request > most {
			t.Errorf("with %d MiB: %d entries follow on the answer, %v", memory>>20, n, err)
		}
	}
}
