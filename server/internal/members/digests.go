package members

import (
	"sync"
	"time"
)

const (
	// digestEvery: a digest is kept of the state after each entry whose index is a multiple of it.
	digestEvery = 16
	// digestCount is how many digests are kept, for members that are ahead or lag.
	digestCount = 1024
	// differTimes is how often in a row a member must differ before the leader says so to the
	// member, if no majority decides which state is right.
	differTimes = 3
)

// Digests holds the digests of this server's state after recent entries, and the last reports of
// other members about theirs. Its methods may be called from any goroutine.
type Digests struct {
	mu      sync.Mutex
	recent  [digestCount]Digest // at index/digestEvery
	last    Digest
	differs map[uint64]opinion // on the leader: by member
	since   time.Time          // when the leadership began under which differs was formed
}

// Digest is the hash of the state after the entry with an index.
type Digest struct{ Index, Hash uint64 }

// opinion is the result of comparing a member's state by its reports.
type opinion struct {
	times int       // how often the states differed in a row; 0: they are equal
	at    time.Time // when the report came: the opinion of a silent member does not count
}

// Note records the digest of the state after an entry.
func (d *Digests) Note(index, hash uint64) {
	if index%digestEvery != 0 {
		return
	}
	d.mu.Lock()
	d.last = Digest{index, hash}
	d.recent[index/digestEvery%digestCount] = d.last
	d.mu.Unlock()
}

// Newest returns the newest digest that was recorded.
func (d *Digests) Newest() Digest {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last
}

// Verdict is the result of comparing a member's digest.
type Verdict uint8

// Results of Digests.Compare.
const (
	Undecided     Verdict = iota // equal, not comparable, or not clear yet
	OtherDiverged                // the other member's state is wrong
	OwnDiverged                  // this server's state is wrong
)

// Compare compares a member's digest, on a server that leads since then: a new leader judges for
// itself. If more members differ from this server than agree with it, this server is wrong.
// Opinions from before after do not count.
func (d *Digests) Compare(from uint64, theirs Digest, since, now, after time.Time) Verdict {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.since.Equal(since) || d.differs == nil {
		d.since, d.differs = since, make(map[uint64]opinion)
	}
	ours := d.recent[theirs.Index/digestEvery%digestCount]
	if theirs.Index == 0 || ours.Index != theirs.Index {
		return Undecided
	}
	if ours.Hash == theirs.Hash {
		d.differs[from] = opinion{0, now}
		return Undecided
	}
	d.differs[from] = opinion{d.differs[from].times + 1, now}
	agree, differ := 1, 0
	for _, o := range d.differs {
		switch {
		case o.at.Before(after):
		case o.times > 0:
			differ++
		default:
			agree++
		}
	}
	switch {
	case differ > agree:
		return OwnDiverged
	case agree > differ || d.differs[from].times >= differTimes:
		return OtherDiverged
	}
	return Undecided
}
