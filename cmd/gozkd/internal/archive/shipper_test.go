package archive

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store/storetest"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/history"
	"github.com/gozkd/gozkd/server/facts"
)

// fixedSource has applied a part of a log.
type fixedSource struct {
	log     []consensus.LogEntry
	applied atomic.Uint64
	away    atomic.Bool   // the log is, as while a checkpoint is installed
	at      time.Time     // of the last batch in captures
	state   string        // in captures; "": a short one
	pause   time.Duration // before each piece of the state
	capture func()        // called after a capture; nil: nothing
}

// LogPosition implements Source.
func (f *fixedSource) LogPosition() facts.LogPosition {
	return facts.LogPosition{Ensemble: ensemble, Applied: f.applied.Load(), Members: 1, Leads: true}
}

// ReplicatedLog implements Source.
func (f *fixedSource) ReplicatedLog(from uint64, _ int64) ([]consensus.LogEntry, error) {
	if f.away.Load() {
		return nil, nil
	}
	return f.log[from-1 : f.applied.Load()], nil
}

// KeepLog implements Source.
func (f *fixedSource) KeepLog(uint64) {}

// Capture implements Source.
func (f *fixedSource) Capture(context.Context) (*facts.Capture, error) {
	state := cmp.Or(f.state, "state")
	c := &facts.Capture{Index: f.applied.Load(), Term: 5, Time: f.at, File: func(context.Context) (*facts.Backup, error) {
		return &facts.Backup{Size: int64(len(state)), ReadCloser: io.NopCloser(slowReader{strings.NewReader(state), f.pause})}, nil
	}}
	if f.capture != nil {
		f.capture()
	}
	return c, nil
}

type slowReader struct {
	io.Reader
	pause time.Duration
}

func (r slowReader) Read(b []byte) (int, error) {
	time.Sleep(r.pause)
	return r.Reader.Read(b)
}

// archiving runs a shipper until stop is called.
func archiving(t *testing.T, m *storetest.Memory, source Source) (stop func()) {
	t.Helper()
	return archivingWith(t, newShipper(m, 24*time.Hour), source)
}

func newShipper(m *storetest.Memory, baseInterval time.Duration) *Shipper {
	return New(Config{Store: m.Client(), Logger: hclog.NewNullLogger(), Interval: time.Second, BaseInterval: baseInterval, BaseBytes: 1 << 30})
}

func archivingWith(t *testing.T, s *Shipper, source Source) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	// Stopped and awaited by stop.
	go func() {
		defer close(done)
		s.Run(ctx, source)
	}()
	return func() { cancel(); <-done }
}

// put writes the objects of entries, which follow the base of entry 4, and returns their names.
func put(t *testing.T, m *storetest.Memory, all []consensus.LogEntry, pieces ...uint64) (names []string) {
	t.Helper()
	at := position{4, firstChain(ensemble, 4, 5)}
	for _, last := range pieces {
		n, b := encodeLog(ensemble, at, all[at.index:last])
		if err := m.Client().Put(t.Context(), n.in(ensemble), b); err != nil {
			t.Fatal(err)
		}
		names, at = append(names, n.in(ensemble)), n.after()
	}
	return names
}

func listed(t *testing.T, m *storetest.Memory) *catalog {
	t.Helper()
	c, err := readCatalog(t.Context(), m.Client(), ensemble, "")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A member that stands by goes on after the writer has merged the object that this member knew as
// the last one.
func TestShipper_LastObjectWasMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, f := storetest.New(1), &fixedSource{log: entriesFrom(t, 1, 30)}
		names := put(t, m, f.log, 10, 20)
		f.applied.Store(20)
		stop := archiving(t, m, f)
		defer stop()
		time.Sleep(10 * time.Second)
		put(t, m, f.log, 20)
		for _, name := range names {
			if err := m.Client().Delete(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		f.applied.Store(30)
		time.Sleep(10 * time.Second)
		if _, end := listed(t, m).reach(position{4, firstChain(ensemble, 4, 5)}); end.index != 30 {
			t.Errorf("the archive ends at entry %d, want 30", end.index)
		}
	})
}

// An ensemble that was brought back does not continue a base of the history that it has lost; the
// same ensemble does.
func TestShipper_OnlyABase(t *testing.T) {
	for _, c := range []struct {
		name  string
		first uint64 // of the log after the restart: entries with other times
		end   uint64
	}{{"same history", 1, 30}, {"another history", 5, 20}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, f := storetest.New(1), &fixedSource{log: entriesFrom(t, 1, 20)}
				f.at = f.log[19].Time
				f.applied.Store(20)
				stop := archiving(t, m, f)
				time.Sleep(10 * time.Second)
				stop()
				f.log = entriesFrom(t, c.first, 30)
				for i := range f.log {
					f.log[i].Index = uint64(i) + 1
				}
				f.applied.Store(15)
				stop = archiving(t, m, f)
				defer stop()
				time.Sleep(time.Minute)
				f.applied.Store(30)
				time.Sleep(time.Minute)
				if _, end := listed(t, m).reach(position{20, firstChain(ensemble, 20, 5)}); end.index != c.end {
					t.Errorf("the chain after the base ends at entry %d, want %d", end.index, c.end)
				}
			})
		})
	}
}

// A base in the middle of a history is continued when the object before it is not there: a listing
// may show the base earlier, and the retention deletes the object.
func TestShipper_BaseWithoutTheObjectBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, f := storetest.New(1), &fixedSource{log: entriesFrom(t, 1, 30)}
		n, _ := encodeLog(ensemble, position{4, firstChain(ensemble, 4, 5)}, f.log[4:20])
		base := baseName{position: n.after(), ms: n.ms, writer: "00000000"}
		if err := m.Client().Put(t.Context(), base.in(ensemble)+partName(0, true), partHeader(ensemble, base, 0).encode([]byte("x"))); err != nil {
			t.Fatal(err)
		}
		f.applied.Store(30)
		stop := archiving(t, m, f)
		defer stop()
		time.Sleep(10 * time.Second)
		if _, end := listed(t, m).reach(n.after()); end.index != 30 {
			t.Errorf("the chain after the base ends at entry %d, want 30", end.index)
		}
	})
}

// A base becomes whole although entries are applied right after its capture.
func TestShipper_BaseWhileEntriesCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, f := storetest.New(1), &fixedSource{log: entriesFrom(t, 1, 200), at: time.Now()}
		f.capture = func() {
			f.applied.Store(min(f.applied.Load()+1, 100))
			f.at = time.Now()
		}
		f.applied.Store(20)
		stop := archivingWith(t, newShipper(m, 10*time.Minute), f)
		for range 60 {
			time.Sleep(time.Minute)
			f.applied.Store(min(f.applied.Load()+1, 200))
		}
		stop()
		c := listed(t, m)
		if n := len(c.whole()); n < 2 {
			t.Errorf("%d bases in an hour with an interval of ten minutes", n)
		}
		start := c.bases[0]
		if _, end := c.reach(start.position); end.index != f.applied.Load() {
			t.Errorf("the log ends at entry %d, want %d", end.index, f.applied.Load())
		}
	})
}

// A base whose upload lasts until the next housekeeping is not deleted, however old its last batch
// is.
func TestShipper_SlowUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, f := storetest.New(1), &fixedSource{log: entriesFrom(t, 1, 100), at: time.Now().Add(-48 * time.Hour)}
		f.state, f.pause = strings.Repeat("s", 3*pieceBytes), housekeeping*time.Second*3/4
		f.applied.Store(20)
		stop := archiving(t, m, f)
		defer stop()
		for range 70 {
			time.Sleep(time.Second)
			f.applied.Add(1)
		}
		if n := len(listed(t, m).whole()); n != 1 {
			t.Errorf("%d whole bases, want 1", n)
		}
	})
}

// slowStore takes an upload when twice the time of another request has passed.
type slowStore struct{ store.Store }

func (s slowStore) Put(ctx context.Context, name string, data []byte) error {
	select {
	case <-time.After(2 * requestTimeout):
		return s.Store.Put(ctx, name, data)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// An upload may take long: that depends on its bytes, and the store ends one without progress.
func TestShipper_LongUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, f := storetest.New(1), &fixedSource{log: entriesFrom(t, 1, 20), at: time.Now()}
		f.applied.Store(20)
		s := newShipper(m, 24*time.Hour)
		s.cfg.Store = slowStore{s.cfg.Store}
		defer archivingWith(t, s, f)()
		time.Sleep(10 * requestTimeout)
		if n := len(listed(t, m).whole()); n != 1 {
			t.Errorf("%d whole bases, want 1", n)
		}
	})
}

// While nothing is written, an old base is as good as a new one.
func TestShipper_OneBaseWhileIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, f := storetest.New(1), &fixedSource{log: entriesFrom(t, 1, 30), at: time.Now().Add(-48 * time.Hour)}
		f.applied.Store(20)
		stop := archiving(t, m, f)
		defer stop()
		time.Sleep(time.Hour)
		if n := len(listed(t, m).bases); n != 1 {
			t.Errorf("%d bases of the same state, want 1", n)
		}
	})
}

// A member that installs a checkpoint when its turn comes begins no chain of its own: it cannot
// tell yet that the archive has another history.
func TestShipper_LogIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, f := storetest.New(1), &fixedSource{log: entriesFrom(t, 1, 30)}
		put(t, m, f.log, 10, 20)
		f.applied.Store(30)
		f.away.Store(true)
		stop := archiving(t, m, f)
		defer stop()
		time.Sleep(10 * time.Second)
		f.away.Store(false)
		time.Sleep(10 * time.Second)
		if _, end := listed(t, m).reach(position{4, firstChain(ensemble, 4, 5)}); end.index != 30 {
			t.Errorf("the chain ends at entry %d, want 30", end.index)
		}
	})
}

// emptiedSource lacks the first entries, as a member whose disk was emptied.
type emptiedSource struct {
	fixedSource
	first uint64
}

func (e *emptiedSource) LogPosition() facts.LogPosition {
	return facts.LogPosition{Ensemble: ensemble, Applied: e.applied.Load(), Members: 3}
}

func (e *emptiedSource) ReplicatedLog(from uint64, size int64) ([]consensus.LogEntry, error) {
	if from < e.first {
		return nil, consensus.ErrCompacted
	}
	return e.fixedSource.ReplicatedLog(from, size)
}

// TestShipper_EntriesOfOthers: a member that lacks entries makes no gap before the others, which
// have them, had their turn since the store works: while it was away, nobody could write.
func TestShipper_EntriesOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := entriesFrom(t, 1, 60)
		m := storetest.New(1)
		put(t, m, all, 10)
		emptied := &emptiedSource{fixedSource{log: all}, 30}
		emptied.applied.Store(50)
		lacking := newShipper(m, 24*time.Hour)
		m.Set(storetest.Faults{Down: true})
		stop := archivingWith(t, lacking, emptied)
		time.Sleep(2*time.Minute + time.Second/2)
		m.Set(storetest.Faults{})
		time.Sleep(2 * time.Second) // both have turns, and the emptied member has the first one
		other := &fixedSource{log: all}
		other.applied.Store(50)
		stopOther := archiving(t, m, other)
		time.Sleep(time.Minute)
		stop()
		stopOther()
		if _, end := listed(t, m).reach(position{4, firstChain(ensemble, 4, 5)}); end.index != 50 || lacking.Stats().Gaps != 0 {
			t.Errorf("the chain ends at entry %d, want 50, with %d gaps", end.index, lacking.Stats().Gaps)
		}
	})
}

// An ensemble that was brought back, and counted its terms as before, does not continue the
// archive.
func TestShipper_AheadWithTheSameTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, f := storetest.New(1), &fixedSource{log: entriesFrom(t, 1, 30)}
		put(t, m, f.log, 10, 20)
		f.log = entriesFrom(t, 2, 30)
		for i := range f.log {
			f.log[i].Index--
		}
		f.applied.Store(30)
		before := m.Names()
		stop := archiving(t, m, f)
		time.Sleep(time.Minute)
		stop()
		if after := m.Names(); len(after) != len(before) {
			t.Errorf("another history continues the archive: %v", after)
		}
	})
}

// Retention keeps the base from which all later moments are reached, although a newer one is old
// enough: the writer of that one was passed by another, whose objects do not end where it is.
func TestOutdated_BaseThatLeadsNowhere(t *testing.T) {
	all := entriesFrom(t, 1, 60)
	start := position{4, firstChain(ensemble, 4, 5)}
	at := func(index uint64) position {
		n, _ := encodeLog(ensemble, start, all[start.index:index])
		return n.after()
	}
	piece := func(from, to uint64) string {
		n, _ := encodeLog(ensemble, at(from), all[from:to])
		return n.in(ensemble)
	}
	base := func(index uint64) string {
		p := start
		if index > start.index {
			p = at(index)
		}
		return baseName{position: p, ms: 1, writer: "00000000"}.in(ensemble) + partName(0, true)
	}
	first, _ := encodeLog(ensemble, start, all[start.index:15])
	names := []string{first.in(ensemble), piece(15, 25), piece(25, 30), piece(15, 40), piece(40, 60), base(4), base(25)}
	if got := catalogOf(names...).outdated(time.Now(), time.Millisecond, nil); len(got) != 0 {
		t.Errorf("deleted, although the moments after entry 30 need it: %v", got)
	}
	if got := catalogOf(append(names, base(60))...).outdated(time.Now(), time.Millisecond, nil); len(got) != len(names) {
		t.Errorf("of %d objects before a base with everything, %d are outdated", len(names), len(got))
	}
}

// While nobody writes, the base that is being uploaded is as old as the last batch.
func TestOutdated_BaseUnderWay(t *testing.T) {
	start := position{4, firstChain(ensemble, 4, 5)}
	half := baseName{position: start, ms: 1, writer: "00000000"}.in(ensemble) + partName(0, false)
	if got := catalogOf(half).outdated(time.Now(), 0, nil); len(got) != 0 {
		t.Errorf("deleted: %v", got)
	}
	next, _ := encodeLog(ensemble, start, entriesFrom(t, 5, 3))
	if got := catalogOf(half, next.in(ensemble)).outdated(time.Now(), 0, nil); len(got) != 1 || got[0] != half {
		t.Errorf("the log has gone on, deleted: %v", got)
	}
}

// A moment behind a gap is refused, also while no complete base follows the gap.
func TestArchive_GapWithoutABase(t *testing.T) {
	m, all := storetest.New(1), entriesFrom(t, 1, 60)
	put(t, m, all, 20)
	behind, b := encodeLog(ensemble, position{30, firstChain(ensemble, 30, 5)}, all[30:40])
	part := baseName{position: position{4, firstChain(ensemble, 4, 5)}, ms: 1, writer: "00000000"}
	err := errors.Join(m.Client().Put(t.Context(), behind.in(ensemble), b),
		m.Client().Put(t.Context(), part.in(ensemble)+partName(0, true), partHeader(ensemble, part, 0).encode(bytes.Repeat([]byte("x"), 9))))
	if err != nil {
		t.Fatal(err)
	}
	var s store.Store = m.Client()
	a, err := Open(t.Context(), s, "")
	if err != nil {
		t.Fatal(err)
	}
	if span, err := a.At(history.Moment{Time: time.UnixMilli(10)}); err != nil || span.Last != 20 || a.End() != 40 {
		t.Error(span.Last, a.End(), err)
	}
	if span, err := a.At(history.Moment{Time: time.UnixMilli(38)}); !errors.Is(err, history.ErrNotCovered) {
		t.Errorf("a moment behind the gap: entries up to %d, %v", span.Last, err)
	}
}

// While the store fails for long, what is kept about entries that wait stays bounded, and none is
// taken for younger than it is.
func TestShipper_SightingsAreBounded(t *testing.T) {
	s, begin := New(Config{}), time.Unix(1e9, 0)
	s.source = &fixedSource{}
	const n = 3 * maxSightings
	for i := range uint64(n) {
		s.see(i+1, begin.Add(time.Duration(i)*time.Second))
	}
	if len(s.seen) != maxSightings || s.seen[maxSightings-1].index != n {
		t.Errorf("%d sightings, the last of entry %d", len(s.seen), s.seen[len(s.seen)-1].index)
	}
	s.pos.index = n - 1
	s.settle()
	if len(s.seen) != 1 || s.seen[0].at.After(begin.Add(n*time.Second)) {
		t.Errorf("%+v", s.seen)
	}
	s.pos.index = n
	s.settle()
	if len(s.seen) != 0 || !s.waiting.IsZero() {
		t.Errorf("%+v", s.seen)
	}
}

// A reader goes on when objects that it has listed are merged, some of which it has read.
func TestArchive_EntriesOfMergedObjects(t *testing.T) {
	m, all := storetest.New(1), entriesFrom(t, 1, 60)
	names := put(t, m, all, 10, 20, 30, 40)
	part := baseName{position: position{4, firstChain(ensemble, 4, 5)}, ms: 1, writer: "00000000"}
	if err := m.Client().Put(t.Context(), part.in(ensemble)+partName(0, true), partHeader(ensemble, part, 0).encode([]byte("x"))); err != nil {
		t.Fatal(err)
	}
	a, err := Open(t.Context(), m.Client(), "")
	if err != nil {
		t.Fatal(err)
	}
	next := uint64(5)
	for e, err := range a.EntriesAfter(t.Context(), a.Spans()[0], a.Spans()[0].First) {
		if err != nil || e.Index != next {
			t.Fatalf("entry %d, want %d: %v", e.Index, next, err)
		}
		if next++; e.Index == 12 {
			put(t, m, all, 50) // the merged object, with entries that the reader did not list
			for _, name := range names {
				m.Change(name, func([]byte) []byte { return nil })
			}
		}
	}
	if next != 41 {
		t.Errorf("the last entry was %d, want 40", next-1)
	}
	for _, err := range a.EntriesAfter(t.Context(), Span{Last: 60, base: a.Spans()[0].base, path: a.Spans()[0].path}, 0) {
		if !errors.Is(err, store.ErrNotFound) {
			t.Errorf("entries that were deleted: %v", err)
		}
		break
	}
}
