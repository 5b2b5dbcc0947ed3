package bounds

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// pipe is the way of writes through log and followers: it takes so many bytes per second, one write
// after another, and each write arrives a while later.
type pipe struct {
	rate  float64 // bytes per second
	first float64 // the same at first, for an eighth of the time; 0: rate
	delay time.Duration
	free  time.Time // when it has taken all that was sent
}

// send returns when a write of that many bytes is answered that is sent now.
func (p *pipe) send(bytes int) time.Time {
	if now := time.Now(); p.free.Before(now) {
		p.free = now
	}
	p.free = p.free.Add(time.Duration(float64(bytes) / p.rate * 1e9))
	return p.free.Add(p.delay)
}

// Clients that always have a long write to send use most of what the pipe takes, whatever its rate
// and delay, also when it has become slower. A short write of another client waits for the least
// window or a few writes, and for what is under way without delaying others much: not for the bytes
// of all clients.
func TestWindow_FitsThePipe(t *testing.T) {
	const most, length = 32 << 20, 4 * time.Second
	for _, rate := range []float64{20e6, 200e6} {
		for _, delay := range []time.Duration{0, 40 * time.Millisecond} {
			for _, p := range []pipe{{rate: rate, delay: delay}, {rate: rate, delay: delay, first: 15 * rate}} {
				for _, bytes := range []int{40_000, 1_000_000} {
					used, worst := throughWindow(t, most, bytes, p, length)
					if used < 0.5 || used > 1.1 {
						t.Errorf("%+v, %d bytes: %.0f %% of the rate are used", p, bytes, used*100)
					}
					may := float64(max(leastWindow, bytes)+2*bytes)/rate + 3*mayDelay.Seconds()
					if worst.Seconds() > may || worst == 0 {
						t.Errorf("%+v, %d bytes: a short write waits for %v, want at most %.3f s", p, bytes, worst, may)
					}
				}
			}
		}
	}
}

// throughWindow lets clients of three hosts send long writes for some time, all that places may
// hold at once. It returns which part of the pipe's rate they used, and for how long a short write
// would have waited at worst, both in the second half of the time.
func throughWindow(t *testing.T, most, bytes int, p pipe, length time.Duration) (used float64, worst time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		var l Writes
		l.Init(1000, most, 0, 0)
		var mu sync.Mutex // guards p and answered
		begin, answered, later := time.Now(), 0, p.rate
		p.rate = max(p.rate, p.first)
		for i := range most / bytes {
			go func() { // ends after length
				for time.Since(begin) < length {
					place := l.Long.Take(bytes, &closer{host: string(rune('a' + i%3))}, time.Hour)
					l.Enter(place, false, time.Hour)
					if l.Long.Accepted(place); !place.HasEntered() {
						t.Error("a write has not entered")
					}
					proposed := time.Now()
					if mu.Lock(); time.Since(begin) > length/8 {
						p.rate = later
					}
					end := p.send(bytes)
					mu.Unlock()
					time.Sleep(time.Until(end))
					l.Answered(place, proposed, time.Now())
					l.Release(bytes-proto.RequestHeaderBytes, place)
					if mu.Lock(); time.Since(begin) > length/2 && time.Since(begin) < length {
						answered += bytes
					}
					mu.Unlock()
				}
			}()
		}
		for time.Since(begin) < length {
			time.Sleep(7 * time.Millisecond)
			if mu.Lock(); time.Since(begin) > length/2 {
				worst = max(worst, time.Until(p.free))
			}
			mu.Unlock()
		}
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		used = float64(answered) / p.rate / (length / 2).Seconds()
		if l.Long.Held() != 0 || l.window.held() != 0 {
			t.Errorf("in the end places hold %d bytes, the window %d", l.Long.Held(), l.window.held())
		}
	})
	return used, worst
}

// The window does not grow unless others wait: a client that sends one write after another says
// nothing about many at once. Whoever enters and proposes nothing leaves it.
func TestWindow_Alone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Writes
		l.Init(1000, 32<<20, 0, 0)
		for range 1000 {
			place := l.Long.Take(100_000, &closer{}, time.Hour)
			if l.Enter(place, false, time.Hour); l.window.held() != 100_000 || l.Long.Held() != 100_000 {
				t.Fatalf("a write of 100,000 bytes holds %d, and %d of the window", l.Long.Held(), l.window.held())
			}
			proposed := time.Now()
			time.Sleep(5 * time.Millisecond)
			l.Answered(place, proposed, time.Now())
			l.Free(place)
		}
		place := l.Long.Take(100_000, &closer{}, time.Hour)
		l.Enter(place, true, time.Hour)
		l.Leave(place)
		if place.HasEntered() || l.window.held() != 0 || l.big.held() != 0 || l.window.leave(&claim{}) {
			t.Errorf("a write that has left: the window holds %d bytes, and there are %d big writes", l.window.held(), l.big.held())
		}
		l.Free(place)
		if l.Long.Held() != 0 || l.window.held() != 0 || l.big.held() != 0 || len(l.Long.arriving) > 0 || l.window.limit != leastWindow {
			t.Errorf("in the end places hold %d bytes, the window of %d holds %d", l.Long.Held(), l.window.limit, l.window.held())
		}
	})
}

// The window shrinks when the writes of a whole round were slow, by as much as the fastest of them:
// a pause, and a slow write among fast ones, say nothing about its size. A round takes longer than
// its last write. Writes of before the window shrank do not count. Every fathomInterval, and if the
// clock is set back, the window and what is known of it begin again. Here it has size bytes before
// each write.
func TestWindow_Rounds(t *testing.T) {
	const size = 16 << 20
	var l Writes
	l.Init(1000, 32<<20, 0, 0)
	w, start := &l.window, time.Now()
	note := func(bytes, proposed, answered, want int) {
		t.Helper()
		at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
		w.limit = size
		if w.note(bytes, at(proposed), at(answered)); w.limit != want {
			t.Errorf("after a write from %d to %d ms the window has %d bytes, want %d", proposed, answered, w.limit, want)
		}
	}
	for _, write := range [][3]int{
		{0, 0, leastWindow}, {-5, 0, size}, {1, 2, size}, {2, 60, size}, {60, 61, size}, // the first round
		{62, 360, size}, {361, 362, size}, // a pause
		{363, 364, size}, {415, 445, size}, // a slow write
		{446, 546, size}, {470, 570, size}, {495, 595, size * 11 / 100}, // all are slow
		{594, 605, size}, {595, 605, size}, // of before
		{620, 642, size}, {650, 672, size / 2},
		{9000, 9001, size}, {9002, 9999, size}, {9003, 10_000, leastWindow},
		{10_001, 10_002, size}, {10_003, 10_070, size}, {10_020, 10_090, size}, {10_053, 10_120, size},
		{20_000, 20_120, leastWindow}, {20_121, 20_221, size}, {20_130, 20_270, size}, {20_171, 20_271, size}, // no write is faster
		{20_272, 20_273, size}, {20_274, 20_374, size}, {20_330, 20_430, size}, {20_431, 20_531, size}, {20_481, 20_581, size * 11 / 100},
	} {
		note(1, write[0], write[1], write[2])
	}
	w.taken, w.lines = size, []*line{{"host", []*claim{{25, make(chan struct{})}}}}
	w.waiting.Store(true)
	if note(100, 20_600, 20_611, size+25); w.taken != size+25 {
		t.Error("the window has grown, and who waits does not enter")
	}
	note(1, 1, -1000, leastWindow)
}
