package bounds

import "time"

const (
	// leastWindow is how large the window is however long writes take. With three servers, a disk
	// that takes 75 MB/s has as much in 20 ms.
	leastWindow = 512 << 10
	// mayDelay is by how much others may delay all writes of a round before the window shrinks.
	// Thus a pause of the disk or of the garbage collector does not count.
	mayDelay, leastRound = 10 * time.Millisecond, 50 * time.Millisecond
	// fathomInterval: so often the window begins at its least again, to see how long a write takes
	// that waits for few others.
	fathomInterval = 10 * time.Second
)

// window bounds the bytes of long writes that are proposed and not answered, because short writes
// of other clients stand behind them in the log. The window is as large as it can be without
// delaying writes by more than mayDelay: log, followers and processors take its writes in that
// time. turns.mu guards all fields.
type window struct {
	turns                  // the limit of bytes is the size of the window
	most     int           // of the size
	shortest time.Duration // that a write took since fathomed
	fathomed time.Time     // when the window last began at its least
	changed  time.Time     // when it shrank or began: earlier writes say nothing about its size
	round    time.Time     // when the round began
	fastest  time.Duration // that a write of the round took; 0: none has ended
}

// note notes that a write is answered now, which entered before it was proposed.
func (w *window) note(bytes int, proposed, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if since := now.Sub(w.fathomed); since >= fathomInterval || since < 0 {
		w.fathomed, w.shortest = now, 0
		w.resize(0, now)
	}
	if !proposed.After(w.changed) {
		return
	}
	took := now.Sub(proposed)
	if w.shortest == 0 || took < w.shortest {
		w.shortest = took
	}
	if w.fastest == 0 || took < w.fastest {
		w.fastest = took
	}
	may := w.shortest + mayDelay
	if took <= may && w.waiting.Load() {
		w.limit = min(w.limit+bytes/4, w.most)
		w.grant()
	}
	if now.Sub(w.round) >= took+leastRound {
		if w.fastest > may {
			w.resize(int(float64(w.limit)*may.Seconds()/w.fastest.Seconds()), now)
		}
		w.round, w.fastest = now, 0
	}
}

// resize begins a round with a window of that many bytes, or its least. w.mu is held.
func (w *window) resize(bytes int, now time.Time) {
	w.limit = max(bytes, min(leastWindow, w.most))
	w.changed, w.round = now, now
}
