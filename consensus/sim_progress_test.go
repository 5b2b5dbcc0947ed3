package consensus

import (
	"encoding/binary"
	"slices"
	"testing"
	"testing/cryptotest"

	"github.com/cespare/xxhash/v2"

	"github.com/gozkd/gozkd/consensus/internal/core"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
)

const (
	simElectionMs = core.ElectionTicks * simTickMs // an election timeout
	// simProgressMs is the longest that a request may wait while the conditions of simProgress
	// hold. A forwarded request that was lost earlier is sent again after 16 election timeouts at
	// the latest, and an election takes a few.
	simProgressMs = 24 * simElectionMs
	// simLateMs is how long a network that was bad may still deliver messages late.
	simLateMs = 2000
)

// simProgress checks that the ensemble does not stand still: while a majority of the voters is up,
// connected and has healthy disks, each request of one of them is answered in time.
//
// The time of a request counts from when it was made, but begins anew whenever a fault begins or
// ends on any member or link, or the membership changes. The other members may be down, stopped or
// cut off, or their disks may hang.
type simProgress struct {
	limitMs    int64
	nextCheck  int64
	conditions uint64 // hash of all faults and of the members that work
	since      int64  // conditions is unchanged since then
	requests   map[simLife]simWaiting
	buf        []byte
}

// simWaiting is the newest request of a member at some moment.
type simWaiting struct {
	number uint64
	at     int64
}

// check is called after each event.
func (p *simProgress) check(w *simWorld) {
	if w.now < p.nextCheck {
		return
	}
	p.nextCheck = (w.now/simTickMs + 1) * simTickMs // unaffected by skipped time
	p.sample(w)
}

// sample looks which requests were answered, and which wait for too long.
func (p *simProgress) sample(w *simWorld) {
	working := p.working(w)
	if conditions := p.hash(w, working); conditions != p.conditions {
		p.conditions, p.since = conditions, w.now
	}
	for _, m := range w.members {
		life := simLife{m.id, uint64(m.life)}
		r, waits := p.requests[life]
		if waits && slices.Contains(working, m) {
			took := w.now - max(r.at, p.since)
			if m.answered >= r.number {
				w.stats.progress.note(took)
			} else if took > p.limitMs {
				p.fail(w, m, working, took)
			}
		}
		if waits && (m.answered >= r.number || !m.up) {
			delete(p.requests, life)
			waits = false
		}
		if !waits && m.up && m.proposed > m.answered {
			p.requests[life] = simWaiting{m.proposed, w.now}
		}
	}
}

func (p *simProgress) fail(w *simWorld, m *simMember, working []*simMember, took int64) {
	text := ""
	for _, m := range w.members {
		text += "\n" + m.String()
		if slices.Contains(working, m) {
			text += " (works)"
		}
	}
	w.fatalf("progress: request %d of member %d has waited for %d ms, although a majority is up and connected and has healthy disks:%s",
		p.requests[simLife{m.id, uint64(m.life)}].number, m.id, took, text)
}

// working returns the majority of the voters that is up and connected and has healthy disks, or
// nil. No other healthy voter may be connected with one of them: it would be connected with some
// and not with others, and could follow a leader that the majority does not have.
func (p *simProgress) working(w *simWorld) []*simMember {
	ahead := w.ahead()
	if ahead == nil || max(w.net.lossy, w.net.slow, w.net.reorder, w.net.dup)+simLateMs > w.now || len(ahead.core.Conf().GetVotersOutgoing()) > 0 {
		return nil
	}
	voters := ahead.core.Conf().GetVoters()
	var healthy []*simMember
	for _, m := range w.members {
		if contains(voters, m.id) && m.healthy() {
			healthy = append(healthy, m)
		}
	}
	for _, m := range healthy {
		group := slices.DeleteFunc(slices.Clone(healthy), func(o *simMember) bool { return o != m && !w.heard(m, o) && !w.heard(o, m) })
		if len(group) <= len(voters)/2 {
			continue
		}
		for _, a := range group {
			for _, b := range healthy {
				in := slices.Contains(group, b)
				if a != b && (in && !(w.heard(a, b) && w.heard(b, a)) || !in && (w.heard(a, b) || w.heard(b, a)) || in && a.needsCheckpoint(b)) {
					return nil
				}
			}
		}
		if w.slowedBetween(group, voters) {
			return nil
		}
		return group
	}
	return nil
}

// slowedBetween reports whether a voter whose clock is slowed down is connected with some of the
// group and not with others. It may lead those, which then elect nobody else.
func (w *simWorld) slowedBetween(group []*simMember, voters []uint64) bool {
	return slices.ContainsFunc(w.members, func(m *simMember) bool {
		if !m.up || !m.core.Clock.Slowed() || !contains(voters, m.id) || slices.Contains(group, m) {
			return false
		}
		links := 0
		for _, o := range group {
			links += int(flagByte(w.heard(o, m)) + flagByte(w.heard(m, o)))
		}
		return links > 0 && links < 2*len(group)
	})
}

// heard reports whether messages from a to b arrive.
func (w *simWorld) heard(a, b *simMember) bool {
	return w.net.cut[a.id-1][b.id-1] <= w.now && w.compatible(a, b)
}

// healthy reports whether the member could work now. A slow disk is not healthy.
func (m *simMember) healthy() bool {
	return m.up && max(m.stoppedUntil, m.hungUntil, m.slowUntil, m.disk.fullUntil) <= m.w.now && !m.emptied && !m.receiving && !m.core.Fresh() && m.core.Outdated() == "" && !m.core.Clock.Slowed()
}

// needsCheckpoint reports whether m needs a checkpoint to follow o, or o, as the leader, is about
// to send it one.
func (m *simMember) needsCheckpoint(o *simMember) bool {
	last, err := m.storage.LastIndex()
	m.w.must(err)
	first, err := o.core.FirstIndex()
	m.w.must(err)
	return last+1 < first || slices.ContainsFunc(o.core.Peers(), func(peer PeerStatus) bool { return peer.ID == m.id && peer.Checkpoint })
}

// hash returns a hash of all faults and of the members that work.
func (p *simProgress) hash(w *simWorld, working []*simMember) uint64 {
	b := p.buf[:0]
	for i, m := range w.members {
		b = binary.AppendUvarint(b, uint64(m.life))
		for _, until := range [...]int64{m.stoppedUntil, m.hungUntil, m.slowUntil, m.disk.fullUntil} {
			b = append(b, flagByte(until > w.now))
		}
		b = append(b, flagByte(slices.Contains(working, m)))
		for j := range w.members {
			b = append(b, flagByte(w.net.cut[i][j] > w.now), flagByte(w.net.down[i][j]))
		}
	}
	if ahead := w.ahead(); ahead != nil {
		for _, id := range ahead.core.Conf().GetVoters() {
			b = append(b, byte(id))
		}
	}
	p.buf = b
	return xxhash.Sum64(b)
}

func flagByte(set bool) byte {
	if set {
		return 1
	}
	return 0
}

// simProgressStats counts the answers to requests for which the conditions of simProgress held.
type simProgressStats struct {
	answers   int
	slow      int // of these: after more than two election timeouts
	slowestMs int64
}

func (s *simProgressStats) note(ms int64) {
	s.answers++
	s.slowestMs = max(s.slowestMs, ms)
	if ms > 2*simElectionMs {
		s.slow++
	}
}

// simHangMs bounds the wait of a request where nothing happens except that disks hang. A leader
// whose disk was slow before may wait for four election timeouts until it offers its leadership,
// and a voter whose log has just gone on believes in a silent leader for one more.
const simHangMs = 6 * simElectionMs

// TestSim_DiskHangs checks that the ensemble goes on within simHangMs when disks hang and nothing
// else happens, as long as a majority has healthy disks.
func TestSim_DiskHangs(t *testing.T) {
	plans := huntGen([]stepKind{stepHangDisk})
	var all simStats
	for seed := range exhaustive.Or(2, 100) { // make sim draws hung disks among all other faults
		p := plans.Example(seed)
		p.Members, p.StartMs = 3+seed%2*2, []int{0, 0, 0, 0, 0}
		cryptotest.SetGlobalRandom(t, p.Seed)
		w := newSimWorld(p, bugNone)
		w.moving.limitMs = simHangMs
		if err := w.simulate(); err != nil {
			t.Fatalf("plan %d: %v\n%v", seed, err, p)
		}
		all.add(&w.stats)
	}
	all.log(t)
}
