package recipes

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/lastzxid"
)

// core is what a Client and its namespaces share.
type core struct {
	cfg          config
	clock        *clock
	wrapped      bool
	conn         Conn
	ownConn      *zk.Conn        // conn, if Connect made it; else it is wrapped
	lastSeenZxid *lastzxid.Seen  // over owned's connections, while the session lives; dial alone touches it
	events       <-chan zk.Event // closed when conn has ended

	timeout atomic.Int64 // a time.Duration: the negotiated session timeout, or the one that is asked for

	ctx            context.Context // of work in the background
	cancel         context.CancelFunc
	closing        chan struct{}
	calls          callCounter    // calls and work in the background
	activeProbes   callCounter    // a probe that is not answered yet
	abandonedCalls abandonedCalls // of calls
	loops          sync.WaitGroup // prober, follower of events
	probeSoon      chan struct{}  // lets the prober probe now; holds one
	ready          chan struct{}  // closed when there is the first session
	watches        watchTable
	closeOnce      sync.Once

	noContainers atomic.Bool // the server has none
	shared       sync.Map    // by sharedKey; see Client.Shared

	mu              sync.Mutex // guards what follows; nothing waits while it is held
	state           ConnState
	session         *Session
	netConn         *sessionConn
	reconnectSignal chan struct{}                  // closed when a wrapped connection has a server again
	stateReaders    map[chan ConnState]func() bool // with what stops looking at the reader's ctx
	// ephemerals of the present session, for a wrapped connection only: nobody else can end a session that was declared lost. Some may be
	// gone, or never have been there.
	ephemerals map[string]struct{}
}

func newCore(cfg config, wrapped bool) *core {
	k := &core{
		cfg:             cfg,
		wrapped:         wrapped,
		lastSeenZxid:    new(lastzxid.Seen),
		clock:           newClock(cfg.suspended),
		closing:         make(chan struct{}),
		probeSoon:       make(chan struct{}, 1),
		ready:           make(chan struct{}),
		stateReaders:    make(map[chan ConnState]func() bool),
		reconnectSignal: make(chan struct{}),
	}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	k.timeout.Store(int64(cfg.timeout))
	return k
}

// start waits for the first session, and adds the credentials.
func (k *core) start(ctx context.Context) error {
	// Ends when the Client is closed; Close waits for it.
	k.loops.Go(k.probeLoop)
	select {
	case <-k.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-k.closing:
		return ErrClosed
	}
	c := &Client{core: k}
	for _, a := range k.cfg.auth {
		if err := c.retry(ctx, "add auth", a.scheme, func(ctx context.Context, _ bool) error {
			_, err := call(ctx, k, func() (struct{}, error) { return struct{}{}, k.conn.AddAuth(a.scheme, a.auth) }, nil)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

func (k *core) close() error {
	var left int
	k.closeOnce.Do(func() {
		k.calls.close()
		patience := time.Duration(k.timeout.Load()) / 3
		k.calls.wait(patience)
		k.cancel()
		k.mu.Lock()
		connected := k.state == Connected || k.state == Reconnected
		session := k.session
		k.setState(Closed) // before the session ends: that is not Lost
		k.mu.Unlock()
		if session != nil {
			session.end(ErrClosed) // before the server can end it
			k.deleteWrappedEphemerals(session, patience/2)
		}
		close(k.closing)
		if k.ownConn != nil {
			if !connected {
				k.closeNetConn() // who waits in a handshake does not see that it shall close
			}
			k.ownConn.Close()
			k.closeNetConn()
			for range k.events { // until go-zookeeper's loop has ended
			}
			patience = time.Hour // what is left ends by itself: its connection has
		}
		left = k.calls.wait(patience) + k.activeProbes.wait(patience)
		if left == 0 {
			k.loops.Wait()
		}
	})
	if left > 0 {
		return fmt.Errorf("recipes: close: %d calls of the wrapped connection are still not answered", left)
	}
	return nil
}

// endWrapped lets go, in the background, of what hangs on a session that lives on with the connection that was wrapped. It tries for about
// as long as limit.
func (k *core) deleteWrappedEphemerals(s *Session, limit time.Duration) {
	if !k.wrapped {
		return
	}
	k.calls.add()
	// Ends when the connection has answered or given up; Close waits for it.
	go func() {
		defer k.calls.done()
		for begun := k.now(); ; time.Sleep(minBackgroundPause) {
			err := k.deleteEphemerals(s.id)
			if err == nil || classify(err) == stopped || k.now()-begun > limit {
				return
			}
		}
	}()
}

func (k *core) now() time.Duration { return k.clock.now() }

// hurry returns the longest pause between two tries to connect: a part of what is left of the session.
func (k *core) maxReconnectPause() time.Duration {
	if s := k.currentSession(); s != nil && s.Remaining() > 0 {
		return max(firstPause, min(longPause/2, time.Duration(k.timeout.Load())/32))
	}
	return 0
}

func (k *core) currentSession() *Session {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.session
}

// event follows the connection's state. With Connect it is called on go-zookeeper's goroutines, which may hold its locks; with Wrap
// some events may be missing.
func (k *core) event(e zk.Event) {
	if e.Type != zk.EventSession {
		return
	}
	switch e.State {
	case zk.StateHasSession:
		if k.wrapped { // only an answer proves that it is alive
			k.reconnected()
			k.probeNow()
			return
		}
		k.markConnected()
	case zk.StateExpired:
		if s := k.currentSession(); s != nil {
			s.end(ErrSessionLost)
		}
	case zk.StateDisconnected, zk.StateConnecting:
		k.markSuspended()
	}
}

// attachedState notes that there is a connection with a session.
func (k *core) markConnected() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.session == nil || k.session.ended.Load() {
		return
	}
	switch k.state {
	case Connecting:
		k.setState(Connected)
		close(k.ready)
	case Suspended, Lost:
		k.setState(Reconnected)
		k.signalReconnect() // go-zookeeper may have dropped the event that said so
	}
}

func (k *core) markSuspended() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state == Connected || k.state == Reconnected {
		k.setState(Suspended)
	}
}

// attached is told by the wire of a session that the server gave or gave back.
func (k *core) sessionGranted(id int64, timeout, sent time.Duration) bool {
	k.timeout.Store(int64(timeout))
	s := k.currentSession()
	if s != nil && s.id == id {
		return s.resume(sent, timeout)
	}
	k.setSession(newSession(id, k.clock, sent, timeout, k.sessionLost))
	if s != nil {
		s.end(ErrSessionLost) // it has ended already, when go-zookeeper was told that it has expired
	}
	return true
}

// adopt makes s the present session.
func (k *core) setSession(s *Session) {
	k.mu.Lock()
	closed := k.state == Closed
	k.session = s
	clear(k.ephemerals)
	k.mu.Unlock()
	if closed {
		s.end(ErrClosed)
	} else if s.ended.Load() {
		k.sessionLost(s) // its end came before it was the present one
	}
}

// lost is called when a session has ended. Its connection is cut, if it can be: who comes back with it is refused by the wire.
func (k *core) sessionLost(s *Session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s != k.session || k.state == Closed {
		return
	}
	if k.state != Connecting {
		if k.state != Lost {
			k.setState(Suspended) // by time alone: the connection may not know yet that the server is silent
		}
		k.setState(Lost)
	}
	if w := k.netConn; w != nil {
		// To close may take a while, and who looks at the session's Context shall not wait.
		k.background(func(context.Context) { _ = w.Conn.Close() }) // it is being given up
	}
}
