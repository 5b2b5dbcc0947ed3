package server

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/memlimit"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/internal/wakeup"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/capacity"
)

// growth keeps the limit of the state at the size that the members can hold, see package capacity.
// Each second, and when the state has grown by an eighth of the room that was left, run measures
// how much this server can hold. A follower reports that to the leader, which proposes the limit.
type growth struct {
	*shared
	gauge  capacity.Gauge
	memory func() capacity.Usage
	// weight is that of the state, and mark the one from which Apply wakes run.
	weight, mark atomic.Int64
	wake         chan struct{}
	ended        atomic.Bool // run has ended

	// connections is the memory of client connections, without their buffers, and attached returns
	// the part of those with sessions. Once refusing, because there was no memory for another, they
	// are refused until there is room. See crowd.
	connections atomic.Int64
	attached    func() int64
	refusing    atomic.Bool
	readOnly    *atomic.Bool // the server is read-only
	conns       *connTable

	mu    sync.Mutex // guards board and since
	board capacity.Board
	since time.Time // the leadership that board is of: reports to an earlier one are old
	// proposing says that a proposal is not applied yet.
	proposing atomic.Bool
	// Owned by run: the latest log lines about limits, when to weigh the subtrees again, and when
	// to collect garbage again.
	logged         growthLog
	weigh, collect time.Time
}

type growthLog struct{ full, near, crowded bool }

const (
	growthInterval = time.Second
	// collectInterval is how often a full server collects garbage at least.
	collectInterval = 5 * time.Second
)

func (g *growth) init(s *Server) {
	g.shared, g.memory, g.wake = s.shared, readMemory, make(chan struct{}, 1)
	g.conns, g.readOnly, g.attached = &s.conns, &s.leader.readOnly, s.conns.attached
	if used := s.cfg.hooks.MemoryUsed; used != nil {
		g.memory = func() capacity.Usage { return capacity.Usage{Other: used()} }
	}
	g.gauge.Allowed = max(0, s.cfg.DataLimit)
}

func (g *growth) run(ctx context.Context) {
	defer g.ended.Store(true)
	// Otherwise nobody knows for a while what lives besides a state that is near to the limit. The
	// first collection still finds what the start needed in pools.
	weight, _ := g.state.weight()
	g.weight.Store(weight)
	for range 2 {
		if g.gauge.Measure().Counts(weight) {
			runtime.GC()
			g.collected()
		}
	}
	if g.cfg.hooks.MemoryUsed == nil {
		afterCollections(func() (again bool) { g.collected(); return !g.ended.Load() })
	}
	ticker := time.NewTicker(growthInterval)
	defer ticker.Stop()
	for {
		// Collect garbage, in a fiftieth of the time at most, while this server's memory makes the
		// state full. Without requests nothing else would, and the memory that the last ones needed
		// would count for minutes.
		if began := time.Now(); g.makesFull() && began.After(g.collect) && g.cfg.hooks.MemoryUsed == nil {
			runtime.GC()
			g.collect = time.Now().Add(max(collectInterval, 50*time.Since(began)))
		}
		g.measure()
		g.look()
		select {
		case <-ctx.Done():
			return
		case <-g.wake:
		case <-ticker.C:
			g.state.look(func() { g.state.tree.AgePages() })
			g.spread(len(g.node.Connected()))
		}
	}
}

// makesFull reports whether the state is full because of this server's memory.
func (g *growth) makesFull() bool {
	_, limit := g.state.weight()
	return limit.Full && limit.Cause == datatree.LimitedByMemory && limit.Member == g.cfg.MemberID
}

// spread lets clients go to the others, with which this server is connected, while their memory on
// it keeps the state full: after a restart they may come back unevenly. Clients that know no other
// must be let in again.
func (g *growth) spread(others int) {
	used, limit := g.crowd(false)
	few := capacity.RoomBeside(g.gauge.Allowed, g.attached(), g.state.watches.Bytes()) == math.MaxInt64
	if few || !g.makesFull() || !capacity.Returning.Fits(used-capacity.ConnectionCost, limit) {
		return
	}
	members := 1 + others
	if g.cfg.LeaderWithoutClients {
		members = max(1, members-1)
	}
	g.conns.spread(g.state.stats().Sessions / members)
}

// collected measures the memory after a collection. It is called by a goroutine of the runtime, and
// must not wait for Apply.
func (g *growth) collected() { g.gauge.Collected(g.weight.Load(), g.memory()) }

// afterCollections calls f after each garbage collection, until f returns false. f must not block.
func afterCollections(f func() (again bool)) {
	// Not so small that the runtime would put it into a block with other objects.
	runtime.AddCleanup(new([64]byte), func(f func() bool) {
		if f() {
			afterCollections(f)
		}
	}, f)
}

// crowded returns a function that reports whether there is no memory for that much of a second
// state beside the present one and what else lives. For each second state, the first call is for at
// most one key: later, that state itself would count as something else.
func (g *growth) crowded() func(bytes int64, keys int) bool {
	var room int64 // before the second state began to arrive; 0: any
	return func(bytes int64, keys int) bool {
		if keys <= 1 {
			room = g.gauge.Measure().Weight
		}
		weight, _ := g.state.weight()
		return room != 0 && weight+bytes+int64(keys)*datatree.ZnodeCost > room
	}
}

func (g *growth) measure() {
	weight, limit := g.state.weight()
	g.weight.Store(weight)
	if g.cfg.hooks.MemoryUsed != nil { // tests say what collections would find
		g.collected()
		g.collected()
	}
	r := g.ability()
	mark := int64(math.MaxInt64)
	for _, a := range []capacity.Ability{r.Ability, r.Disk} {
		if room := a.Weight - weight; room > 0 {
			mark = min(mark, weight+room/8)
		}
	}
	g.mark.Store(mark)
	switch st := g.node.Status(); {
	case st.Leading:
		g.mu.Lock()
		g.begin(st.Since)
		g.board.Note(uint64(g.cfg.MemberID), r)
		g.mu.Unlock()
		g.lead(weight, limit)
	case st.Leader != 0 && (r.Counts(weight) || r.Disk.Counts(weight) || limit.Weight != 0):
		b := binary.AppendUvarint([]byte{reportAbility, byte(r.Cause)}, uint64(r.Weight))
		g.node.Send(st.Leader, binary.AppendUvarint(b, uint64(r.Disk.Weight)))
	}
}

// ability returns how much this server can hold. The clients with sessions count in full, as if
// they came now: quiet connections take less memory. A configured reserve makes the disk count for
// all members.
func (g *growth) ability() (r capacity.Report) {
	r.Ability, r.Disk = g.gauge.Measure(), capacity.OnDisk(g.diskRoom())
	if g.cfg.DiskReserve > 0 {
		r.Ability, r.Disk = r.Least(r.Disk), capacity.Ability{}
	}
	if g.cfg.Dir != "" {
		r.Ability = r.Least(capacity.OnDisk(memlimit.FileSize()))
	}
	if g.gauge.Allowed > 0 {
		room := capacity.RoomBeside(g.gauge.Allowed, g.attached(), g.state.watches.Bytes())
		r.Ability = r.Least(capacity.Ability{Weight: room, Cause: capacity.Memory})
	}
	return r
}

// diskRoom returns how many bytes a checkpoint may take: as many as the disk has beside the
// reserve, with the present one; none if the log has a disk of its own that lacks the reserve,
// where the next checkpoint must make room first.
func (g *growth) diskRoom() int64 {
	if g.cfg.Dir == "" || g.cfg.DiskReserve < 0 {
		return math.MaxInt64
	}
	room := g.besideReserve(g.cfg.Dir)
	if log := cmp.Or(g.cfg.LogDir, g.cfg.Dir); log != g.cfg.Dir && g.besideReserve(log) < 0 {
		return 0
	}
	if info, err := os.Stat(filepath.Join(g.cfg.Dir, "checkpoint.db")); err == nil && room != math.MaxInt64 {
		room += info.Size()
	}
	return room
}

// besideReserve returns how many bytes are free on the disk of dir beside the reserve, or
// math.MaxInt64 if nobody can tell. The reserve is by default what the log may need, but at most a
// quarter of the disk, so that a small disk is not full from the start.
func (g *growth) besideReserve(dir string) int64 {
	disk, known := vfs.SpaceOf(dir)
	if g.cfg.hooks.Disk != nil && dir == g.cfg.Dir {
		disk, known = g.cfg.hooks.Disk(), true
	}
	if !known {
		return math.MaxInt64
	}
	return disk.Free - cmp.Or(g.cfg.DiskReserve, min(2*g.cfg.SegmentBytes, disk.Size/4))
}

// begin forgets the reports to an earlier leadership. g.mu is held.
func (g *growth) begin(since time.Time) {
	if since != g.since {
		g.since, g.board = since, capacity.Board{}
	}
}

func (g *growth) take(from uint64, b []byte) error {
	if len(b) < 2 {
		return errors.New("truncated")
	}
	weight, n := binary.Uvarint(b[1:])
	cause := capacity.Cause(b[0])
	if n <= 0 || cause > capacity.Disk || (weight == 0) != (cause == capacity.Nothing) {
		return errors.New("no ability")
	}
	r := capacity.Report{Ability: capacity.Ability{Weight: int64(min(weight, math.MaxInt64)), Cause: cause}}
	if disk, _ := binary.Uvarint(b[1+n:]); disk > 0 { // earlier versions do not say it
		r.Disk = capacity.Ability{Weight: int64(min(disk, math.MaxInt64)), Cause: capacity.Disk}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.board.Note(from, r)
	return nil
}

func (g *growth) lead(weight int64, now datatree.Limit) {
	if g.proposing.Load() {
		return
	}
	set, _, _ := g.state.membership()
	voters := set.Voters()
	if len(set) == 0 { // a standalone server
		voters = []uint64{uint64(g.cfg.MemberID)}
	}
	away := g.away(voters)
	g.mu.Lock()
	was := capacity.Ability{Weight: now.Weight, Cause: capacity.Cause(now.Cause), Member: now.Member}
	next, propose := g.board.Propose(was, weight, voters, away, func(id uint64) bool {
		_, ok := set.Get(id)
		return ok || id == uint64(g.cfg.MemberID)
	})
	g.mu.Unlock()
	if !propose {
		return
	}
	g.proposing.Store(true)
	limit := datatree.Limit{Weight: next.Weight, Cause: datatree.LimitCause(next.Cause), Member: next.Member}
	body := datatree.SetLimitBody{Limit: limit, Epoch: g.state.lastZxid().Epoch()}
	done := func(*datatree.Result) { g.proposing.Store(false) }
	g.propose(datatree.Request{Op: proto.OpSetLimit, Body: body.Append(nil)}, done)
}

// applied is called by the goroutine of Apply, without the lock, when the state has changed.
func (g *growth) applied(weight int64) {
	g.weight.Store(weight)
	if weight >= g.mark.Load() {
		g.mark.Store(math.MaxInt64)
		wakeup.Send(g.wake)
	}
}

// look weighs the subtrees of a state that is near to its limit, in a hundredth of the time at
// most, and logs changes.
func (g *growth) look() {
	data := g.state.stats().Growth
	switch began := time.Now(); {
	case !data.Near():
		g.state.largest.Store(nil)
	case data.Largest == nil || began.After(g.weigh):
		g.state.largest.Store(g.state.weighSubtrees())
		g.weigh = began.Add(100 * time.Since(began))
	}
	now := growthLog{full: data.Full, near: data.Near(), crowded: g.stillCrowded()}
	if now == g.logged || !g.life.Serving.Load() {
		return
	}
	was := g.logged
	g.logged = now
	text := g.state.stats().Growth.String()
	switch {
	case now.full && !was.full:
		g.cfg.Logger.Error("the data are full: requests that add data are refused with -125", "reason", text)
	case was.full && !now.full:
		g.cfg.Logger.Warn("the data are no longer full: requests that add data are accepted again",
			"limit", printable.Size(data.Limit))
	case now.near && !was.near:
		g.cfg.Logger.Warn("soon requests that add data will be refused", "reason", text)
	}
	switch {
	case now.crowded && !was.crowded:
		g.cfg.Logger.Error("this server is crowded: connections are closed", "reason", g.crowdFacts().String())
	case was.crowded && !now.crowded:
		g.cfg.Logger.Warn("this server is no longer crowded: new sessions are accepted again")
	}
}

// memoryMetrics are samples of package runtime/metrics: the heap that the last collection found in
// use, and the memory of the runtime besides the heap.
var memoryMetrics = []string{
	"/gc/heap/live:bytes",
	"/memory/classes/heap/stacks:bytes", "/memory/classes/metadata/mcache/inuse:bytes",
	"/memory/classes/metadata/mspan/inuse:bytes", "/memory/classes/metadata/other:bytes",
	"/memory/classes/os-stacks:bytes", "/memory/classes/other:bytes", "/memory/classes/profiling/buckets:bytes",
}

func readMemory() (m capacity.Usage) {
	samples := make([]metrics.Sample, len(memoryMetrics))
	for i := range samples {
		samples[i].Name = memoryMetrics[i]
	}
	metrics.Read(samples)
	m.Live = int64(samples[0].Value.Uint64())
	for _, s := range samples[1:] {
		m.Other += int64(s.Value.Uint64())
	}
	return m
}
