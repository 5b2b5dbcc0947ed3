package kill

import (
	"fmt"
	"sync"

	"github.com/gozkd/gozkd/proto"
)

// A ledger holds the answers that all clients have received. Safe for concurrent use.
type ledger struct {
	mu     sync.Mutex
	zxids  map[proto.Zxid]string // of acknowledged writes, with the client
	last   proto.Zxid            // the highest of them
	shared map[string]*register
	faults []string
	counts map[string]int
}

// A register is a znode that all workers set with any version.
type register struct {
	acked map[int32]string // version → who set it
	open  map[string]bool  // the writes without an answer
	last  int32            // the version that was read last
}

func newLedger() *ledger {
	return &ledger{zxids: map[proto.Zxid]string{}, shared: map[string]*register{}, counts: map[string]int{}}
}

// faultf records a broken promise. Its first word is the kind: lost, invented, order, ephemeral,
// answer.
func (l *ledger) faultf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, fmt.Sprintf(format, args...))
}

// count adds n to a figure of the report.
func (l *ledger) count(what string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[what] += n
}

// floor returns a zxid that every later write must exceed.
func (l *ledger) floor() proto.Zxid {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// ack notes an acknowledged write and its zxid.
func (l *ledger) ack(id string, zxid, floor proto.Zxid) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts["acknowledged"]++
	if other, twice := l.zxids[zxid]; twice {
		l.faults = append(l.faults, fmt.Sprintf("order: %s and %s both got the zxid %v", other, id, zxid))
	}
	if zxid <= floor {
		l.faults = append(l.faults, fmt.Sprintf("order: %s got the zxid %v, but %v was acknowledged before it was sent", id, zxid, floor))
	}
	l.zxids[zxid] = id
	l.last = max(l.last, zxid)
}

// setShared notes the outcome of a write to a register; version is meaningful if it was
// acknowledged.
func (l *ledger) setShared(path, id string, version int32, acked bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.shared[path]
	if !acked {
		r.open[id] = true
		return
	}
	if other, twice := r.acked[version]; twice {
		l.faults = append(l.faults, fmt.Sprintf("lost: %s and %s both made version %d of %s", other, id, version, path))
	}
	r.acked[version] = id
}

// checkShared compares a register with what was read.
func (l *ledger) checkShared(path string, n znode) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.shared[path]
	fault := func(format string, args ...any) {
		l.faults = append(l.faults, fmt.Sprintf(format, args...)+fmt.Sprintf(" (%s is %q, version %d)", path, n.data, n.stat.Version))
	}
	top := r.last
	for v := range r.acked {
		top = max(top, v)
	}
	switch who := r.acked[n.stat.Version]; {
	case !n.exists:
		fault("lost: the znode is gone")
	case n.stat.Version < top:
		fault("lost: version %d was there", top)
	case int(n.stat.Version) > len(r.acked)+len(r.open):
		fault("invented: only %d writes were acknowledged and %d had no answer", len(r.acked), len(r.open))
	case who != "" && who != n.data:
		fault("lost: %s made this version", who)
	case who == "" && n.stat.Version > 0 && !r.open[n.data]:
		fault("invented: of this version no writer without an answer is known by that name")
	}
	r.last = max(r.last, n.stat.Version)
}
