package recipes

import (
	"math/rand/v2"
	"sync"
	"time"
)

// hosts is a zk.HostProvider that makes short pauses while there is a session to be saved, and those of go-zookeeper when there is none and
// no server has answered for a while. Names are resolved by the dialer, at each dial.
type hostProvider struct {
	closing <-chan struct{}
	// hurry returns the longest pause that there is time for, 0 if it does not matter.
	maxPause func() time.Duration

	mu         sync.Mutex
	servers    []string
	next       int
	attempts   int // since a session was there
	pause      time.Duration
	hadSession bool          // there was a session
	dialPause  time.Duration // before the server that Next returned is dialed
}

const (
	firstPause = 10 * time.Millisecond
	// longPause is go-zookeeper's own, during which it gives up what it was asked and looks whether it was closed.
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

// Next returns the server to try, after the pause that wait makes: a moment after a connection was lost, so that not all clients of a
// server come at once; and after each round in vain, twice as long as before the last.
//
// It does not wait itself: go-zookeeper holds a lock meanwhile that others need who ask for the present server.
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

// wait makes the pause before a dial, or a part of it if the Client is being closed.
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

// Connected notes that there is a session.
func (h *hostProvider) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attempts, h.pause, h.hadSession = 0, 0, true
}
