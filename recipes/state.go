package recipes

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// ConnState is the state of a Client's connection and session, as in Curator.
type ConnState int

// The states. A Client goes from Connecting to Connected. After that it goes to Suspended and back
// to Reconnected, or to Suspended, Lost and Reconnected. With AcceptReadOnly, Connecting and Lost
// may be followed by ReadOnly, and then by Reconnected or Lost.
const (
	Connecting  ConnState = iota // no session yet
	Connected                    // the first session is established
	Suspended                    // the connection is lost; the session may be alive
	Reconnected                  // connected again, with the same session or, after Lost, with a new one
	Lost                         // the session has ended or may have: nothing that depends on it is held
	Closed                       // the Client was closed
	ReadOnly                     // no session, and connected to a server in read-only mode; see AcceptReadOnly
)

func (s ConnState) String() string {
	names := [...]string{"connecting", "connected", "suspended", "reconnected", "lost", "closed", "read-only"}
	if s < 0 || int(s) >= len(names) {
		return fmt.Sprintf("state %d", int(s))
	}
	return names[s]
}

// stateBuffer is how many states a slow reader may lag before missing some.
const stateBuffer = 8

// State returns the current state after a look at the clock: the state of an overdue session is
// Lost even before a timer has run.
func (c *Client) State() ConnState {
	if s := c.core.currentSession(); s != nil {
		s.check()
	}
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	return c.core.state
}

// States returns a channel that receives the current state and then every change, until ctx ends or
// the Client is closed; then the channel is closed. A reader that lags by more than eight states
// misses the oldest, never the latest.
func (c *Client) States(ctx context.Context) <-chan ConnState {
	k := c.core
	ch := make(chan ConnState, stateBuffer)
	k.mu.Lock()
	defer k.mu.Unlock()
	ch <- k.state
	if k.state == Closed {
		close(ch)
		return ch
	}
	k.stateReaders[ch] = context.AfterFunc(ctx, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if _, there := k.stateReaders[ch]; there {
			delete(k.stateReaders, ch)
			close(ch)
		}
	})
	return ch
}

// setState must be called with mu held.
func (k *core) setState(s ConnState) {
	if k.state == s || k.state == Closed {
		return
	}
	k.state = s
	level := slog.LevelInfo
	if s == Suspended || s == Lost {
		level = slog.LevelWarn
	}
	k.cfg.log.Log(context.Background(), level, "state "+s.String())
	if s == Connected || s == Reconnected {
		k.connection, k.disconnect = context.WithCancel(context.Background())
	} else {
		k.disconnect()
	}
	for ch, stop := range k.stateReaders {
		push(ch, s)
		if s == Closed {
			stop()
			delete(k.stateReaders, ch)
			close(ch)
		}
	}
}

// push sends a state to a reader. Only one goroutine at a time may push to ch.
func push(ch chan ConnState, s ConnState) {
	select {
	case ch <- s:
	default:
		select { // only readers receive, so there is room afterwards
		case <-ch:
		default:
		}
		ch <- s
	}
}

// StableStates is States without the noise of a connection that comes and goes: Curator's
// CircuitBreakingConnectionStateListener. After a state that is not Connected, Reconnected or
// ReadOnly, no state is sent until the pause that policy chooses is over, except Closed and the
// first Lost. If the connection was lost again in that pause, or is still lost, policy chooses
// another pause; Curator sends Reconnected also if the connection was lost again in the pause. When
// policy allows no more pauses, the present state is sent and the next change ends the silence. A
// pause lasts for 10 ms at least.
func (c *Client) StableStates(ctx context.Context, policy RetryPolicy) <-chan ConnState {
	states, stable := c.States(ctx), make(chan ConnState, stateBuffer)
	// Ends with ctx or with the Client. Nobody waits.
	go func() {
		defer close(stable)
		b := breaker{policy: policy, now: c.core.clock.now, out: stable}
		for {
			select {
			case s, open := <-states:
				if !open {
					return
				}
				b.change(s)
			case <-b.pauseEnd:
				b.pauseOver()
			}
		}
	}()
	return stable
}

// breaker decides which states a reader of StableStates receives. Owned by one goroutine.
type breaker struct {
	policy   RetryPolicy
	now      func() time.Duration
	out      chan ConnState
	pauseEnd <-chan time.Time // nil before the first pause

	pausing      bool
	begun        time.Duration // of the first of several pauses
	pauses       int
	unstable     bool // the connection was lost again in the pause
	latest, sent ConnState
}

// shortestPause keeps the policy of StableStates from being asked without a pause.
const shortestPause = 10 * time.Millisecond

func (s ConnState) disconnected() bool { return s == Suspended || s == Lost }

func (b *breaker) change(s ConnState) {
	b.latest = s
	b.unstable = b.unstable || s.disconnected()
	first := !b.pausing
	if first && s.disconnected() {
		b.begun, b.pauses = b.now(), 0
		b.pause()
	}
	if first || s == Closed || s == Lost && b.sent != Lost {
		b.send(s)
	}
}

func (b *breaker) send(s ConnState) {
	b.sent = s
	push(b.out, s)
}

// pause begins another pause unless the policy allows none.
func (b *breaker) pause() {
	b.pauses++
	wait, again := b.policy(b.pauses, b.now()-b.begun)
	if b.pausing = again; again {
		b.unstable = false
		b.pauseEnd = time.After(max(wait, shortestPause))
	}
}

func (b *breaker) pauseOver() {
	if b.pausing && (b.unstable || b.latest.disconnected()) {
		b.pause()
	} else {
		b.pausing = false
	}
	if !b.pausing && b.latest != b.sent {
		b.send(b.latest)
	}
}
