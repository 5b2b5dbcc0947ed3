package core

import (
	"math"

	"go.etcd.io/raft/v3"
)

// RetentionLimits bound the applied entries that stay in memory for other members.
type RetentionLimits struct {
	// Bytes is kept for members that were away briefly. A member that needs more gets a checkpoint.
	Bytes int
	// MaxBytes bounds the entries kept for a member that is being served right now, from the log or
	// by a checkpoint, or that is connected: it may merely be slow.
	MaxBytes int
	// ArchiveBytes bounds the entries kept because they are not in the archive yet; see KeepFrom.
	// 0: there is no archive.
	ArchiveBytes int
	// CutEntries and CutBytes are the size of one step: entries leave the memory when either is
	// reached. Each step copies the entries that stay.
	CutEntries, CutBytes int
	// InFlight bounds the entries that the leader sends to a member without an answer. 0: no bound.
	InFlight int
}

// DefaultRetention returns the limits of a server that may use that many bytes of memory.
func DefaultRetention(memory int64) RetentionLimits {
	least := int(min(16<<20, memory/32))
	most := int(min(256<<20, memory/8))
	return RetentionLimits{
		Bytes: least, MaxBytes: most, CutEntries: 1024, CutBytes: least / 4,
		InFlight: max(maxBatchBytes, int(min(32<<20, memory/64))),
	}
}

// entryBytes is the approximate size of an entry without its data.
const entryBytes = 128

// Retention decides which applied entries stay in memory, for other members and the archive, and
// alone compacts raft's storage. When a checkpoint is sent to a member, the entries after the
// checkpoint stay for that member, as long as they fit into MaxBytes.
type Retention struct {
	*raftState
	limits RetentionLimits
	sizes  []int32 // of the last entries, up to the applied index
	bytes  int     // sum of sizes
	// cut looks for entries to drop once this many entries, or bytes, are in memory.
	nextLen, nextBytes int
	pinned             map[uint64]pinnedIndex // by member that a checkpoint is sent to
	archived           uint64                 // see KeepFrom
}

// pinnedIndex keeps the log after an index.
type pinnedIndex struct {
	index uint64
	ticks int // until it expires; 0: it lasts until the transfer has ended
}

// pinTicks is how long a member may take to install a checkpoint that it has received.
const pinTicks = 4 * ElectionTicks

func (t *Retention) tick() {
	for to, p := range t.pinned {
		switch p.ticks {
		case 0:
		case 1:
			delete(t.pinned, to)
		default:
			t.pinned[to] = pinnedIndex{p.index, p.ticks - 1}
		}
	}
}

func (t *Retention) note(bytes int) {
	t.sizes = append(t.sizes, int32(bytes)+entryBytes)
	t.bytes += bytes + entryBytes
}

func (t *Retention) reset() {
	t.sizes, t.bytes = nil, 0
	t.scheduleCut()
}

func (t *Retention) scheduleCut() {
	t.nextLen, t.nextBytes = len(t.sizes)+t.limits.CutEntries, t.bytes+t.limits.CutBytes
}

func (t *Retention) leadershipChanged() { clear(t.pinned) }

// serving reports whether a checkpoint is being sent to a member, or installed by a member.
func (t *Retention) serving() bool { return len(t.pinned) > 0 }

// load notes the applied entries with which the log in memory begins.
func (t *Retention) load() error {
	t.scheduleCut()
	first, err := t.storage.FirstIndex()
	if err != nil || first > t.applied {
		return err
	}
	entries, err := t.storage.Entries(first, t.applied+1, math.MaxUint64)
	for _, e := range entries {
		t.note(len(e.GetData()))
	}
	return err
}

// cut drops applied entries from memory that no member needs.
func (t *Retention) cut() error {
	if len(t.sizes) < t.nextLen && t.bytes < t.nextBytes {
		return nil
	}
	defer t.scheduleCut()
	alone := len(t.conf.GetVoters()) == 1 && len(t.conf.GetLearners())+len(t.conf.GetVotersOutgoing()) == 0
	soft, needed := t.limits.Bytes, t.applied
	switch {
	case alone:
		soft = 0
	case t.role == raft.StateLeader:
		needed = t.neededFrom()
	}
	// Entries beyond the soft bound go unless a member needs them; beyond the hard bound all go.
	// What the archive needs stays in both cases, up to a bound of its own. No bound is below 0, so
	// the loop ends when all have gone.
	index, drop, bytes := t.applied-uint64(len(t.sizes)), 0, t.bytes
	archived := func() bool { return index < t.archived || bytes > t.limits.ArchiveBytes }
	for archived() && (bytes > t.limits.MaxBytes || bytes > soft && index < needed) {
		bytes -= int(t.sizes[drop])
		drop++
		index++
	}
	if drop < t.limits.CutEntries && t.bytes-bytes < t.limits.CutBytes {
		return nil
	}
	t.sizes = append([]int32(nil), t.sizes[drop:]...)
	t.bytes = bytes
	if first, err := t.storage.FirstIndex(); err != nil || index < first {
		return err
	}
	return t.storage.Compact(index)
}

// KeepFrom says that the archive has the entries before an index. Until then it has none.
func (t *Retention) KeepFrom(index uint64) {
	if index > 0 {
		t.archived = max(t.archived, index-1)
	}
}

// Archives reports whether entries are kept for an archive.
func (t *Retention) Archives() bool { return t.limits.ArchiveBytes > 0 }

// neededFrom returns the index up to which every member has the log that is being served, or is
// connected. A member with little processor time may not be heard for an election timeout.
func (t *Retention) neededFrom() uint64 {
	needed := t.applied
	t.raft.WithProgress(func(id uint64, _ raft.ProgressType, pr raftProgress) {
		if id != t.id && (pr.RecentActive || t.connected[id] != 0) && pr.Match > 0 {
			needed = min(needed, pr.Match)
		}
	})
	for _, p := range t.pinned {
		needed = min(needed, p.index)
	}
	return needed
}

// TransferStarted notes that a checkpoint of that index is sent to a member: the later log is kept.
func (t *Retention) TransferStarted(to, index uint64) {
	t.pinned[to] = pinnedIndex{index: index}
}

// TransferEnded tells raft whether the member has the checkpoint. After a success, the log after
// the checkpoint is kept until the member has had time to install and report the checkpoint.
func (t *Retention) TransferEnded(to uint64, ok bool) {
	status := raft.SnapshotFinish
	if p, pinned := t.pinned[to]; ok && pinned {
		t.pinned[to] = pinnedIndex{p.index, pinTicks}
	} else {
		delete(t.pinned, to)
	}
	if !ok {
		status = raft.SnapshotFailure
	}
	t.raft.ReportSnapshot(to, status)
}
