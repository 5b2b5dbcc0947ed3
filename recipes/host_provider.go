package recipes

import (
	"math/rand/v2"
	"sync"
	"time"
)

// hostProvider is a zk.HostProvider with short pauses while a session can be saved, and
// go-zookeeper's own pauses when there is none and no server has answered for a while. The dialer
// resolves names at each dial.
type hostProvider struct {
	closing <-chan struct{}
	// maxPause returns the longest permissible pause, or 0 if there is no limit.
	maxPause func() time.Duration

	mu         sync.Mutex
	servers    []string
	next       int
	attempts   int // since the last session was established or resumed
	pause      time.Duration
	hadSession bool          // a session was established before
	dialPause  time.Duration // to make before the server that Next returned is dialed
}

const (
	firstPause = 10 * time.Millisecond
	// longPause is go-zookeeper's own pause, during which go-zookeeper fails pending requests and
	// notices Close.
	longPause = time.Second
)

func (h *hostProvider) Init(servers []string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.servers = servers
	return nil
}

func (h *hostProvider) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.servers)
}

// Next returns the server to try next. pauseBeforeDial makes the pause: a short pause after a
// connection was lost, so that the clients of a server do not all arrive at once, and after each
// fruitless round twice the previous pause.
//
// Next itself does not wait, because go-zookeeper calls Next with a lock held that other methods
// need.
func (h *hostProvider) Next() (server string, retryStart bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	server = h.servers[h.next]
	h.next = (h.next + 1) % len(h.servers)
	var wait time.Duration
	switch {
	case h.attempts == 0 && h.hadSession:
		wait = firstPause
	case h.attempts > 0 && h.attempts%len(h.servers) == 0:
		h.pause = max(firstPause, 2*h.pause)
		if longest := h.maxPause(); longest > 0 {
			h.pause = min(h.pause, longest)
		}
		wait = h.pause
	}
	h.attempts++
	if wait >= longPause {
		h.pause, wait, retryStart = longPause, 0, true
	}
	h.dialPause = wait
	select {
	case <-h.closing:
		retryStart = true
	default:
	}
	return server, retryStart
}

// pauseBeforeDial makes the pause that Next chose. Closing the Client cuts the pause short.
func (h *hostProvider) pauseBeforeDial() {
	h.mu.Lock()
	rest := h.dialPause
	h.dialPause = 0
	h.mu.Unlock()
	if rest == 0 {
		return
	}
	t := time.NewTimer(rest/2 + rand.N(rest/2+1))
	defer t.Stop()
	select {
	case <-t.C:
	case <-h.closing:
	}
}

// Connected notes that a session was established or resumed.
func (h *hostProvider) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attempts, h.pause, h.hadSession = 0, 0, true
}
