package recipes

import (
	"context"
	"fmt"
)

// State is how a Client stands to its session, as in Curator.
type ConnState int

// The states. From Connecting a Client goes to Connected; from then on it is Suspended and Reconnected, or Suspended, Lost and
// Reconnected, in turn.
const (
	Connecting  ConnState = iota // there was no session yet
	Connected                    // the first session is there
	Suspended                    // the connection is gone; the session may live on
	Reconnected                  // there is a connection again, with the same session, or after Lost with a new one
	Lost                         // the session is over, or may be: nothing that hangs on it is held any more
	Closed                       // the Client was closed
)

func (s ConnState) String() string {
	names := [...]string{"connecting", "connected", "suspended", "reconnected", "lost", "closed"}
	if s < 0 || int(s) >= len(names) {
		return fmt.Sprintf("state %d", int(s))
	}
	return names[s]
}

// stateBuffer is how many states a slow reader may be behind before it misses some.
const stateBuffer = 8

// State returns the present one. It looks at the clock: a session whose time is over is Lost, whether or not a timer has run.
func (c *Client) State() ConnState {
	if s := c.core.currentSession(); s != nil {
		s.check()
	}
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	return c.core.state
}

// States returns a channel that gets the present state and then each new one, until ctx ends or the Client is closed; then it is
// closed. A reader that is eight states behind misses the oldest, never the newest.
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

// setState needs mu.
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
			select { // only readers take from it meanwhile, so after this there is room
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
