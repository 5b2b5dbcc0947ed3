package accept

import (
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
)

// Joined accepts the connections of several listeners. It is safe for concurrent use.
type Joined struct {
	results
	separator string // in Addr
	close     func() error
	accepting sync.WaitGroup

	mu        sync.Mutex     // guards listeners
	listeners []net.Listener // kept after Close, for Addr
}

// NewJoined returns a Joined without listeners, in whose Addr the separator stands between theirs.
func NewJoined(separator string) *Joined {
	j := &Joined{results: newResults(), separator: separator}
	j.close = sync.OnceValue(j.closeAll)
	return j
}

// Add makes a listener one of j's. After Close it closes the listener and returns net.ErrClosed.
func (j *Joined) Add(l net.Listener) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.open.Err() != nil {
		return errors.Join(net.ErrClosed, l.Close())
	}
	j.listeners = append(j.listeners, l)
	j.accepting.Go(func() { // stopped by Close, which waits, or by Remove
		for {
			conn, err := l.Accept()
			if errors.Is(err, net.ErrClosed) || !j.hand(conn, err) {
				return
			}
		}
	})
	return nil
}

// Remove closes a listener. Connections that it has accepted stay.
func (j *Joined) Remove(l net.Listener) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.listeners = slices.DeleteFunc(j.listeners, func(other net.Listener) bool { return other == l })
	return l.Close()
}

// All returns the listeners.
func (j *Joined) All() []net.Listener {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.listeners)
}

// Close closes all listeners.
func (j *Joined) Close() error { return j.close() }

func (j *Joined) closeAll() (err error) {
	j.mu.Lock()
	j.cancel()
	for _, l := range j.listeners {
		err = errors.Join(err, l.Close())
	}
	j.mu.Unlock()
	j.accepting.Wait()
	return err
}

// Addr returns the addresses of all listeners.
func (j *Joined) Addr() net.Addr {
	var all []string
	for _, l := range j.All() {
		all = append(all, l.Addr().String())
	}
	return joinedAddr(strings.Join(all, j.separator))
}

type joinedAddr string

func (joinedAddr) Network() string  { return "tcp" }
func (a joinedAddr) String() string { return string(a) }
