package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/memlimit"
	"github.com/gozkd/gozkd/server/internal/capacity"
	"github.com/gozkd/gozkd/watch"
)

// TestGrowth_LimitAsPercentage: a percentage is that of the memory, 75 unless it is set, and a
// number of bytes goes before it.
func TestGrowth_LimitAsPercentage(t *testing.T) {
	percent := func(n int64) int64 { return memlimit.Available() / 100 * n }
	for _, c := range []struct {
		cfg  Config
		want int64 // 0: an error
	}{
		{Config{}, percent(75)}, {Config{DataLimitPercent: 40}, percent(40)}, {Config{DataLimitPercent: 40, DataLimit: 1000}, 1000},
		{Config{DataLimitPercent: -1}, 0}, {Config{DataLimitPercent: 101}, 0},
	} {
		s, err := New(c.cfg)
		// With ulimit -v the memory depends a little on what the process has reserved.
		if (err == nil) != (c.want != 0) || err == nil && max(s.growth.gauge.Allowed-c.want, c.want-s.growth.gauge.Allowed) > c.want/100 {
			t.Errorf("%+v: %v, want %d", c.cfg, err, c.want)
		}
	}
}

// TestWatchMemory_OfLittleMemory: a third of 5,000 clients, with 40 watches each, are not
// disconnected again and again by a server of three with 64 MiB.
func TestWatchMemory_OfLittleMemory(t *testing.T) {
	before := debug.SetMemoryLimit(52 << 20) // as serve does
	defer debug.SetMemoryLimit(before)
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for c := range 1700 {
		for i := range 40 {
			s.conns.watches.Add(watch.ConnID(c), fmt.Sprintf("/watched/%d-%d", c, i), watch.Data)
		}
	}
	if held, limit := s.conns.watches.Bytes(), s.conns.watchLimit(); held > limit {
		t.Errorf("the watches take %d bytes, allowed are %d", held, limit)
	}
}

// TestGrowth_MeasuresBesidesTheState: what lives besides the state is known from the start on, and
// a deletion after a collection does not count as such, nor lowers the limit.
func TestGrowth_MeasuresBesidesTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, besides, znodes = 1 << 20, 100_000, 60
		var memory Memory
		start := func() (*Server, *client.Client) {
			s := startInProcess(t, Config{DataLimit: limit, Memory: &memory}, func(s *Server) {
				s.growth.memory = func() capacity.Usage { return capacity.Usage{Live: s.growth.weight.Load() + besides} }
			})
			return s, connectTo(t, s)
		}
		stop := func(s *Server, c *client.Client) {
			if err := errors.Join(c.Close(), s.Close()); err != nil {
				t.Error(err)
			}
		}
		s, c := start()
		for i := range znodes {
			if _, _, err := c.Create(t.Context(), fmt.Sprint("/", i), make([]byte, 10_000), client.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		stop(s, c)
		s, c = start()
		defer func() { stop(s, c) }()
		time.Sleep(growthInterval / 2)
		if g := s.Facts().Stats().Growth; g.Limit != limit-besides {
			t.Errorf("started, and the limit is that of %+v", g)
		}
		s.growth.collected()
		for i := range znodes / 2 {
			if err := c.Delete(t.Context(), fmt.Sprint("/", i), -1); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(growthInterval)
		if g := s.Facts().Stats().Growth; g.Limit != limit-besides {
			t.Errorf("half is deleted, and the limit is that of %+v", g)
		}
	})
}

// TestGrowth_IdleServerMeasuresAgain: a load whose garbage fills a server leaves it, and nobody
// sends anything that would make the runtime collect. The server is soon no longer full.
func TestGrowth_IdleServerMeasuresAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 1 << 20
		defer debug.SetGCPercent(debug.SetGCPercent(-1)) // tests make much garbage
		var loaded atomic.Bool
		s := startInProcess(t, Config{DataLimit: limit}, func(s *Server) {
			s.growth.memory = func() (u capacity.Usage) {
				if u.Live = 500_000; loaded.Load() {
					u.Live = 2 * limit
				}
				return u
			}
		})
		if err := s.Load(t.Context(), map[string][]byte{"/a": make([]byte, 400_000)}); err != nil {
			t.Fatal(err)
		}
		full := func() bool { return s.Facts().Stats().Growth.Full }
		loaded.Store(true)
		s.growth.collected()
		s.growth.collected()
		if time.Sleep(2 * growthInterval); !full() {
			t.Fatal("the load does not fill the server")
		}
		loaded.Store(false)
		for i := 0; full(); i++ { // a collection reports to a goroutine of the runtime, which is not in the bubble
			if time.Sleep(collectInterval); i == 1000 {
				t.Fatal("an idle server stays full")
			}
		}
	})
}

// TestAfterCollections: the function is called after each collection, until it returns false.
func TestAfterCollections(t *testing.T) {
	calls, n := make(chan int, 10), 0
	afterCollections(func() bool { n++; calls <- n; return n < 3 })
	for want := 1; want <= 3; want++ {
		runtime.GC()
		if got := <-calls; got != want {
			t.Errorf("call %d, want %d", got, want)
		}
	}
	for range 3 {
		runtime.GC()
	}
	if len(calls) > 0 {
		t.Error("called again")
	}
}

// TestGrowth_WithoutLimitIsNeverCrowded: then a received checkpoint is read beside the present one.
func TestGrowth_WithoutLimitIsNeverCrowded(t *testing.T) {
	s, err := New(Config{DataLimit: -1, InProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	s.state.tree = datatree.New(datatree.Options{})
	if s.growth.crowded()(1<<40, 1) {
		t.Error("crowded without a limit")
	}
}

// TestGrowth_CrowdedByBothStates: a small state beside a large one that is received may be too
// much, and a large one beside a small one that is received is not.
func TestGrowth_CrowdedByBothStates(t *testing.T) {
	s, err := New(Config{DataLimit: 1_000_000, InProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	s.state.tree = wholeTree(t) // 3,000 znodes
	crowded := s.growth.crowded()
	weight := s.state.tree.Weight()
	if left := 1_000_000 - weight; weight < 200_000 || crowded(left, 0) || !crowded(left+1, 0) || !crowded(0, int(left)/50) {
		t.Errorf("the state weighs %d", weight)
	}
	s.state.tree = datatree.New(datatree.Options{})
	if crowded(900_000, 100) || !crowded(990_000, 1000) {
		t.Error("an empty state counts for too much, or what is received for too little")
	}
	collected := func(besides int64) {
		for range 2 {
			s.growth.gauge.Collected(0, capacity.Usage{Live: besides})
		}
	}
	collected(600_000) // clients
	if crowded(1, 1) || crowded(300_000, 100) || !crowded(400_000, 100) {
		t.Error("what lives besides the state counts for too much or too little")
	}
	collected(900_000) // with 300,000 bytes of the second state
	if crowded(300_000, 100) {
		t.Error("the second state counts twice")
	}
}

// TestGrowth_RefusesNonsense: a limit of 0 would be none.
func TestGrowth_RefusesNonsense(t *testing.T) {
	var g growth
	for report, ok := range map[string]bool{
		"": false, "\x01": false, "\x01\x80": false, "\x01\x00": false, "\x02\x00": false, "\x00\x05": false, "\x03\x05": false,
		"\x00\x00": true, "\x01\x05": true, "\x02\x05": true, "\x00\x00\x05": true, "\x00\x00\x80": true,
	} {
		if err := g.take(2, []byte(report)); (err == nil) != ok {
			t.Errorf("%q: %v", report, err)
		}
	}
}

// What another member can hold bounds what the leader proposes. The disk of one voter does not, and
// the disks of a majority do. Earlier versions do not say what their disks can hold.
func TestGrowth_TakesReports(t *testing.T) {
	var g growth
	disk := func(weight int64, member uint8) capacity.Ability {
		return capacity.Ability{Weight: weight, Cause: capacity.Disk, Member: member}
	}
	for _, c := range []struct {
		report []uint64
		want   capacity.Ability
	}{
		{[]uint64{uint64(capacity.Disk), 5 << 20}, disk(5<<20, 2)},
		{[]uint64{uint64(capacity.Disk), 5 << 20, 6 << 20}, disk(5<<20, 2)},
		{[]uint64{uint64(capacity.Nothing), 0}, capacity.Ability{}},
		{[]uint64{uint64(capacity.Nothing), 0, 4 << 20}, disk(4<<20, 0)},
	} {
		g.board = capacity.Board{}
		g.board.Note(1, capacity.Report{Disk: disk(3<<20, 1)})
		var b []byte
		for _, v := range c.report {
			b = binary.AppendUvarint(b, v)
		}
		if err := g.take(2, b); err != nil {
			t.Fatal(err)
		}
		three := []uint64{1, 2, 3}
		if limit, _ := g.board.Propose(capacity.Ability{}, 4<<20, three, nil, func(uint64) bool { return true }); limit != c.want {
			t.Errorf("%v: the limit is %+v, want %+v", c.report, limit, c.want)
		}
	}
}

// TestDropState_ReleasesTheState: if the checkpoint cannot be read, with or without a call of
// Restore, the lock is free: otherwise Close would wait for ever.
func TestDropState_ReleasesTheState(t *testing.T) {
	for name, restore := range map[string]bool{"before Restore": false, "after Restore": true} {
		s, err := New(Config{InProcess: true})
		if err != nil {
			t.Fatal(err)
		}
		s.state.tree = datatree.New(datatree.Options{})
		a := newApplier(s)
		zxid := s.state.lastZxid()
		s.life.Serving.Store(true)
		release := a.dropState()
		now := s.circumstances(consensus.Status{Current: true})
		now.accepting = true
		if got := s.state.lastZxid(); got != zxid || s.state.stats().Znodes == 0 || now.service().answers() {
			t.Errorf("%s: a server without a state is ready, or its last zxid is %v, not %v", name, got, zxid)
		}
		if restore {
			if _, err := a.Restore(pairs(wholeTree(t), func(_ int, k, v []byte) ([]byte, []byte) { return k, v })); err != nil {
				t.Fatal(err)
			}
		}
		release()
		if !s.state.TryLock() || s.state.dropped.Load() != nil {
			t.Errorf("%s: the state is locked, or still counts as dropped", name)
		}
	}
}

// TestGrowth_ForgetsOldReports: a server that leads again does not raise the limit by what a member
// said when the server led before.
func TestGrowth_ForgetsOldReports(t *testing.T) {
	var g growth
	begun := time.Unix(1, 0)
	g.begin(begun)
	g.board.Note(2, capacity.Report{Ability: capacity.Ability{Weight: 900, Cause: capacity.Memory}})
	g.begin(begun.Add(time.Hour))
	g.board.Note(1, capacity.Report{Ability: capacity.Ability{Weight: 1000, Cause: capacity.Memory}})
	now := capacity.Ability{Weight: 500, Cause: capacity.Memory, Member: 2}
	if next, propose := g.board.Propose(now, 480, []uint64{1}, nil, func(uint64) bool { return true }); propose {
		t.Errorf("the limit becomes %+v", next)
	}
}
