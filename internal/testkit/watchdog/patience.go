package watchdog

import (
	"context"
	"sync"
	"testing"
	"time"
)

// After is time.After for a test that waits for something that must happen: the channel is closed
// when the test has waited for d, in seconds without other load as Watch counts them. Use After
// where a test can report a hang better than the stacks do. After must not be used in a synctest
// bubble, which has its own time.
func After(t testing.TB, d time.Duration) <-chan struct{} {
	t.Helper()
	return Context(t, d).Done()
}

// Context returns a context that is cancelled when After's channel would be closed, or when the
// test ends.
func Context(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &timer{left: d, enough: d / 20, cancel: cancel, load: systemLoad}
	p.start()
	t.Cleanup(p.stop)
	return ctx
}

// timer counts down in seconds without other load. It waits for the time left as if there were no
// load, reads the load, and waits again for the rest. A test that does not wait long pays for a
// single timer.
type timer struct {
	cancel context.CancelFunc
	load   func() float64
	enough time.Duration // the timer may end with this much time left

	mu      sync.Mutex
	timer   *time.Timer
	left    time.Duration
	stopped bool
}

func (p *timer) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(p.left, p.tick)
}

func (p *timer) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	if p.left -= withoutLoad(p.left, p.load()); p.left <= p.enough {
		p.cancel()
		return
	}
	p.timer.Reset(p.left)
}

func (p *timer) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	p.timer.Stop()
	p.cancel()
}
