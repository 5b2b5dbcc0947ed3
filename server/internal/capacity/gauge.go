package capacity

// Usage is the memory that the process uses, in bytes.
type Usage struct {
	Live  int64  // heap that the last collection found in use
	Other int64  // stacks and the runtime's own structures
	GCs   uint64 // collections so far
}

// Room is what the disk of the checkpoint has, in bytes. A checkpoint takes up to twice the weight
// of the state, because a merge writes new pages before it frees the old ones.
type Room struct {
	Free       int64
	Reserve    int64 // what must stay free
	Checkpoint int64 // what the present checkpoint takes
}

// Gauge computes the ability of a server. It is used by one goroutine.
type Gauge struct {
	// Allowed is how much memory the state and all else that lives may take. 0: any.
	Allowed int64

	started bool
	gcs     uint64
	before  int64 // the weight at the last Measure
	besides int64 // what the process used besides the state, at the last collection
}

// Measure returns what the server can hold, given the weight of its state at the moment. Memory
// besides the state counts as of the last collection; the state weighed then at least what it
// weighed at the last Measure, or weighs now.
func (g *Gauge) Measure(weight int64, u Usage, disks ...Room) (a Ability) {
	if !g.started { // the collections so far saw what the start needed
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
	for _, d := range disks {
		a = a.Least(Ability{Weight: max(1, (d.Free+d.Checkpoint-d.Reserve)/2), Cause: Disk})
	}
	return a
}
