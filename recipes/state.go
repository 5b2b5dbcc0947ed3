package recipes

import (
	"context"
	"fmt"
)

// ConnState is the state of a Client's connection and session, as in Curator.
type ConnState int

// The states. A Client goes from Connecting to Connected. After that it goes to Suspended and back
// to Reconnected, or to Suspended, Lost and Reconnected.
const (
	Connecting  ConnState = iota // no session yet
	Connected                    // the first session is established
	Suspended                    // the connection is lost; the session may be alive
	Reconnected                  // connected again, with the same session or, after Lost, with a new one
	Lost                         // the session has ended or may have: nothing that depends on it is held
	Closed                       // the Client was closed
)

func (s ConnState) String() string {
	names := [...]string{"connecting", "connected", "suspended", "reconnected", "lost", "closed"}
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
	k.cfg.logger.Printf("state %v", s)
	for ch, stop := range k.stateReaders {
		select {
		case ch <- s:
		default:
			select { // only readers receive, so there is room afterwards
			case <-ch:
			default:
			}
			ch <- s
		}
		if s == Closed {
			stop()
			delete(k.stateReaders, ch)
			close(ch)
		}
	}
}
