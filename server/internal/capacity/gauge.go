package capacity

// Usage is the memory that the process uses, in bytes.
type Usage struct {
	Live  int64  // heap that the last collection found in use
	Other int64  // stacks and the runtime's own structures
	GCs   uint64 // collections so far
}

// Room describes the disk of the checkpoint, in bytes. A checkpoint takes up to twice the weight
// of the state, because a merge writes new pages before it frees the old ones.
type Room struct {
	Free       int64
	Reserve    int64 // must stay free
	Checkpoint int64 // taken by the present checkpoint
}

// Gauge computes the ability of a server. It is used by one goroutine.
type Gauge struct {
	// Allowed bounds the memory of the state and of everything else that lives. 0: no bound.
	Allowed int64

	started bool
	gcs     uint64
	before  int64 // the weight at the last Measure
	besides int64 // memory of the process besides the state, at the last collection
}

// Measure returns the ability of the server, given the present weight of its state. disk is nil if
// the disk does not count. Memory besides the state counts as of the last collection. The state
// weighed then at least the smaller of its weight at the last Measure and its present weight.
func (g *Gauge) Measure(weight int64, u Usage, disk *Room) (a Ability) {
	if !g.started { // the collections so far saw the garbage of the start
		g.started, g.gcs, g.before = true, u.GCs, weight
	}
	if u.GCs != g.gcs {
		g.gcs = u.GCs
		g.besides = max(0, u.Live-min(weight, g.before))
	}
	g.before = weight
	if g.Allowed > 0 {
		a = Ability{Weight: max(1, g.Allowed-g.besides-u.Other), Cause: Memory}
	}
	if disk != nil {
		a = a.Least(Ability{Weight: max(1, (disk.Free+disk.Checkpoint-disk.Reserve)/2), Cause: Disk})
	}
	return a
}
