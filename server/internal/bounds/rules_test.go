package bounds

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// Writes are accepted while there are fewer than the limit, and fewer bytes than theirs, whatever
// the next one has.
func TestWrites_Limits(t *testing.T) {
	for _, tc := range []struct {
		max, maxBytes int
		sizes         []int
		accepted      int
	}{
		{3, 1000, []int{1, 1, 1, 1}, 3},
		{9, 100, []int{60, 60, 60}, 2},
		{9, 100, []int{60, 40, 1}, 2},
		{9, 100, []int{60, 39, 1}, 3},
		{9, 100, []int{5000, 1}, 1},
		{0, 100, []int{1}, 0},
	} {
		var l Writes
		l.Init(tc.max, tc.maxBytes, 0, 0)
		var taken []int
		for _, n := range tc.sizes {
			if l.Try(n) {
				taken = append(taken, n)
			}
		}
		if len(taken) != tc.accepted || l.Outstanding() != tc.accepted {
			t.Errorf("%+v: %d accepted, %d under way", tc, len(taken), l.Outstanding())
		}
		l.Take(7) // a connect request is always accepted
		for _, n := range append(taken, 7) {
			l.Release(n, nil)
		}
		if l.Outstanding() != 0 || l.n != 0 || l.bytes != 0 {
			t.Errorf("%+v: %d writes of %d bytes stay", tc, l.n, l.bytes)
		}
		l.SetMax(0)
		if l.Try(1) {
			t.Errorf("%+v: a limit of 0 accepts a write", tc)
		}
		if l.Close(); !l.Try(1) || !l.Wait(0) {
			t.Errorf("%+v: a closed limit refuses", tc)
		}
	}
}

// Long writes have places, and short ones do not wait for them.
func TestWrites_LongAreApart(t *testing.T) {
	const body = LongFrame - 4 - proto.RequestHeaderBytes
	var l Writes
	l.Init(9, body, 0, 0)
	for range 3 {
		place := l.Long.Take(body+1+proto.RequestHeaderBytes, &closer{}, time.Hour)
		l.Enter(place, false, time.Hour)
		if !l.Try(body+1) || l.Long.Held() == 0 || !l.Try(1) {
			t.Fatalf("no room: long writes have %d bytes, short ones %d of %d", l.Long.Held(), l.bytes, body)
		}
		l.Release(body+1, place)
		if l.Long.Held() != 0 {
			t.Errorf("a long write has ended, and holds %d bytes", l.Long.Held())
		}
	}
	if !l.Try(body) || l.Try(1) || l.Long.Held() != 0 {
		t.Errorf("a write that needs no place: short ones have %d bytes of %d, long ones %d", l.bytes, body, l.Long.Held())
	}
	frame := body / 2
	l.Long.Take(frame, &closer{}, time.Hour)
	l.Long.Take(frame, &closer{}, time.Hour)
	go l.Close()
	if l.Long.Take(frame, &closer{}, time.Hour); l.Long.Held() != 3*frame {
		t.Errorf("closed places hold %d bytes", l.Long.Held())
	}
}

// A large request is refused if the large ones that are under way leave no room for it.
func TestWrites_Large(t *testing.T) {
	const header = proto.RequestHeaderBytes
	var l Writes
	l.Init(100, 1<<20, 100, 400)
	for _, step := range []struct {
		frame   int
		large   bool
		refused bool
		try     bool
		sum     int
	}{
		{100, false, false, true, 0}, {101, true, false, true, 101}, {299, true, false, true, 400}, {101, true, true, false, 400},
		{100, false, false, true, 400}, {400, true, true, false, 400},
	} {
		err := l.CheckLarge(step.frame)
		if l.IsLarge(step.frame) != step.large || (err != nil) != step.refused || err != nil && !errors.Is(err, ErrLargeRequest) {
			t.Errorf("a frame of %d bytes: large %v, %v", step.frame, l.IsLarge(step.frame), err)
		}
		if step.try && !l.Try(step.frame-header) || l.large != step.sum {
			t.Errorf("after a frame of %d bytes the large ones have %d, want %d", step.frame, l.large, step.sum)
		}
	}
	l.Release(299-header, nil)
	if err := l.CheckLarge(299); err != nil || l.large != 101 {
		t.Errorf("after one has ended: %v, %d bytes", err, l.large)
	}
	if err := l.CheckLarge(300); err == nil {
		t.Error("one byte more is accepted")
	}
	var none, least Writes
	if least.Init(1, 1, 1, 0); least.IsLarge(1) || !least.IsLarge(2) {
		t.Error("a request of two bytes is large from one byte on")
	}
	none.Init(1, 1, 0, 0)
	if none.IsLarge(1<<30) || none.CheckLarge(1<<30) != nil {
		t.Error("a request is large without a bound")
	}
	for bytes, want := range map[int]bool{bigMultiBytes: false, bigMultiBytes + 1: true} {
		if IsBig(proto.OpMulti, bytes) != want || IsBig(proto.OpSetData, bytes) {
			t.Errorf("a multi of %d bytes is big: %v", bytes, !want)
		}
	}
}

// A write that waits goes on when there is room for it, or gives up when its patience has ended.
func TestWrites_Wait(t *testing.T) {
	for what, tc := range map[string]struct {
		free func(l *Writes) // after a second
		want bool
		took time.Duration
	}{
		"one ends":        {func(l *Writes) { l.Release(1, nil) }, true, time.Second},
		"the limit rises": {func(l *Writes) { l.SetMax(4) }, true, time.Second},
		"it is closed":    {func(l *Writes) { l.Close() }, true, time.Second},
		"nothing":         {func(*Writes) {}, false, 3 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			var l Writes
			l.Init(3, 1<<20, 0, 0)
			for range 3 {
				if !l.Try(1) {
					t.Fatal("no room")
				}
			}
			time.AfterFunc(time.Second, func() { tc.free(&l) })
			start := time.Now()
			if got := l.Wait(3 * time.Second); got != tc.want || time.Since(start) != tc.took {
				t.Errorf("%s: %v after %v, want %v after %v", what, got, time.Since(start), tc.want, tc.took)
			}
			if tc.want && !l.Wait(0) {
				t.Errorf("%s: there is no room any more", what)
			}
			time.Sleep(3 * time.Second) // the timer of the patience must not wait for anything
		})
	}
	synctest.Test(t, func(t *testing.T) {
		var l Writes
		l.Init(1, 1<<20, 0, 0)
		if !l.Try(1) {
			t.Fatal("no room")
		}
		time.AfterFunc(time.Hour, func() { l.Release(1, nil) })
		if start := time.Now(); !l.Wait(0) || time.Since(start) != time.Hour {
			t.Errorf("without patience a write waits for %v", time.Since(start))
		}
	})
}

// Only few large multis are under way. The next waits until one of them has ended, is lost or is
// refused, or until its client is gone; other writes do not wait for them.
func TestWrites_BigMultis(t *testing.T) {
	const bytes = 100 << 10
	for what, tc := range map[string]struct {
		free  func(l *Writes, big, small *Place) // after a second
		gone  bool
		waits time.Duration
		held  [3]int // in the end: how many have places, are in the window, are big
	}{
		"a big one ends":       {func(l *Writes, big, _ *Place) { l.Release(bytes, big) }, false, time.Second, [3]int{3, 3, 2}},
		"a big one is refused": {func(l *Writes, big, _ *Place) { l.Free(big) }, false, time.Second, [3]int{3, 3, 2}},
		"a small one ends":     {func(l *Writes, _, small *Place) { l.Release(bytes, small) }, true, 15 * time.Second, [3]int{2, 2, 2}},
		"all are closed":       {func(l *Writes, _, _ *Place) { l.Close() }, false, time.Second, [3]int{4, 4, 3}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var l Writes
			l.Init(100, 64<<20, 0, 0)
			last := &closer{gone: tc.gone}
			var places []*Place
			for i := range maxBig + 2 { // the last waits
				owner := &closer{}
				if i > maxBig {
					owner = last
				}
				places = append(places, l.Long.Take(bytes, owner, time.Minute))
				if i <= maxBig && (!l.Enter(places[i], i < maxBig, time.Minute) || !l.Try(bytes)) {
					t.Fatal("no room")
				}
			}
			start := time.Now()
			time.AfterFunc(time.Second, func() { tc.free(&l, places[0], places[maxBig]) })
			if entered := l.Enter(places[maxBig+1], true, time.Minute); entered == tc.gone || time.Since(start) != tc.waits {
				t.Errorf("%s: entered %v after %v", what, entered, time.Since(start))
			}
			if tc.gone {
				l.Free(places[maxBig+1])
			}
			if held := [3]int{l.Long.Held() / bytes, l.window.held() / bytes, l.big.held()}; held != tc.held {
				t.Errorf("%s: %v, want %v", what, held, tc.held)
			}
		})
	}
}

// The data that several outputs refer to count once, and a portion of them for each.
func TestMemory(t *testing.T) {
	var m Memory
	m.Limit.Store(100)
	for n, want := range map[int64][2]bool{-1: {false, false}, 50: {false, false}, 51: {false, true}, 100: {false, true}, 101: {true, true}} {
		m.Unread.Store(n)
		m.Queued.Store(n)
		if got := [2]bool{m.UnreadExceeded(), m.QueuesTight()}; got != want || m.Waiting() != max(0, 2*n) {
			t.Errorf("%d of 100: exceeded %v, tight %v, %d bytes wait", n, got[0], got[1], m.Waiting())
		}
	}
	m.Unread.Store(0)
	one, other := make([]byte, 60), make([]byte, 7)
	blobs := []*Blob{m.Hold(one), m.Hold(one), m.Hold(one[:30]), m.Hold(other)}
	if n := m.Unread.Load(); n != 67 || blobs[0] != blobs[1] || blobs[0] == blobs[3] {
		t.Errorf("%d bytes are unread", n)
	}
	if n := m.Portion(blobs[:1]); n != 20 {
		t.Errorf("a third of 60 bytes is %d", n)
	}
	if n := m.Portion(blobs); n != 67 {
		t.Errorf("all are %d", n)
	}
	var each []int64
	m.EachBlob(func(_ *Blob, bytes, holders int64) { each = append(each, bytes*100+holders) })
	if slices.Sort(each); !slices.Equal(each, []int64{701, 6003}) {
		t.Errorf("%v", each)
	}
	m.Release(blobs[1:3])
	if n := m.Unread.Load(); n != 67 || m.Portion(blobs[:1]) != 60 {
		t.Errorf("%d bytes are unread with one holder each", n)
	}
	m.Release([]*Blob{blobs[0], blobs[3]})
	if n := m.Unread.Load(); n != 0 || len(m.shared.blobs) != 0 {
		t.Errorf("%d bytes are unread without holders, of %d blobs", n, len(m.shared.blobs))
	}
	if again := m.Hold(one); m.Unread.Load() != 60 || m.Portion([]*Blob{again}) != 60 {
		t.Error("data that come back do not count")
	}
}
