package consensus

import (
	"math"

	"go.etcd.io/raft/v3"
)

// tailLimits bound what is applied and still in memory.
type tailLimits struct {
	// bytes is how much stays for members that were away for a moment. Who needs more gets a checkpoint.
	bytes int
	// maxBytes bounds what stays for a member that is being served right now, by log or by checkpoint.
	maxBytes int
	// cutEntries and cutBytes: entries leave the memory in steps of this size, whichever is reached first, because each
	// step copies what stays.
	cutEntries, cutBytes int
}

func defaultTailLimits() tailLimits {
	return tailLimits{bytes: 16 << 20, maxBytes: 256 << 20, cutEntries: 1024, cutBytes: 4 << 20}
}

// entryBytes is about what an entry takes beside its data.
const entryBytes = 128

// pin keeps the log behind an index.
type pin struct {
	index uint64
	ticks int // that it lasts yet; 0: until the transfer has ended
}

// pinTicks is how long a member may take to install a checkpoint that it has.
const pinTicks = 4 * electionTicks

func (c *core) tickTail() {
	for to, p := range c.tail.pinned {
		switch p.ticks {
		case 0:
		case 1:
			delete(c.tail.pinned, to)
		default:
			c.tail.pinned[to] = pin{p.index, p.ticks - 1}
		}
	}
}

// tail is what is applied and still in memory: the sizes of the last entries up to the applied one.
type tail struct {
	limits tailLimits
	sizes  []int32
	bytes  int
	// look again when there is so much
	nextLen, nextBytes int
	pinned             map[uint64]pin // member that a checkpoint is sent to
}

func (t *tail) note(bytes int) {
	t.sizes = append(t.sizes, int32(bytes)+entryBytes)
	t.bytes += bytes + entryBytes
}

func (t *tail) reset() {
	t.sizes, t.bytes = nil, 0
	t.lookLater()
}

func (t *tail) lookLater() {
	t.nextLen, t.nextBytes = len(t.sizes)+t.limits.cutEntries, t.bytes+t.limits.cutBytes
}

// loadTail takes stock of the applied entries that the log in memory begins with.
func (c *core) loadTail() error {
	first, err := c.storage.FirstIndex()
	if err != nil || first > c.applied {
		return err
	}
	entries, err := c.storage.Entries(first, c.applied+1, math.MaxUint64)
	for _, e := range entries {
		c.tail.note(len(e.GetData()))
	}
	return err
}

// cut lets go of applied entries in memory that nobody needs.
func (c *core) cut() error {
	t := &c.tail
	if len(t.sizes) < t.nextLen && t.bytes < t.nextBytes {
		return nil
	}
	defer t.lookLater()
	alone := len(c.conf.GetVoters()) == 1 && len(c.conf.GetLearners())+len(c.conf.GetVotersOutgoing()) == 0
	soft, needed := t.limits.bytes, c.applied
	switch {
	case alone:
		soft = 0
	case c.role == raft.StateLeader:
		needed = c.neededFrom()
	}
	// Entries go while there is more than the soft bound, and those that somebody needs only beyond the hard one.
	index, drop, bytes := c.applied-uint64(len(t.sizes)), 0, t.bytes
	for drop < len(t.sizes) && (bytes > t.limits.maxBytes || bytes > soft && index < needed) {
		bytes -= int(t.sizes[drop])
		drop++
		index++
	}
	if drop < t.limits.cutEntries && t.bytes-bytes < t.limits.cutBytes {
		return nil
	}
	t.sizes = append([]int32(nil), t.sizes[drop:]...)
	t.bytes = bytes
	if first, err := c.storage.FirstIndex(); err != nil || index < first {
		return err
	}
	return c.storage.Compact(index)
}

// neededFrom returns the index up to which every member that is being served has the log.
func (c *core) neededFrom() uint64 {
	needed := c.applied
	c.node.WithProgress(func(id uint64, _ raft.ProgressType, pr raftProgress) {
		if id != c.id && pr.RecentActive && pr.Match > 0 {
			needed = min(needed, pr.Match)
		}
	})
	for _, p := range c.tail.pinned {
		needed = min(needed, p.index)
	}
	return needed
}

// transferStarted notes that a checkpoint of that index goes to a member: what follows it is kept.
func (c *core) transferStarted(to, index uint64) { c.tail.pinned[to] = pin{index: index} }

// transferEnded tells raft whether the member has the checkpoint. What follows it is kept until the member has had time to install
// it and to say so.
func (c *core) transferEnded(to uint64, ok bool) {
	status := raft.SnapshotFinish
	if p, pinned := c.tail.pinned[to]; ok && pinned {
		c.tail.pinned[to] = pin{p.index, pinTicks}
	} else {
		delete(c.tail.pinned, to)
	}
	if !ok {
		status = raft.SnapshotFailure
	}
	c.node.ReportSnapshot(to, status)
}
