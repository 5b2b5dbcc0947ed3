package recipes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/lastzxid"
	"github.com/gozkd/gozkd/recipes/internal/backoff"
)

// core is the state that a Client and its namespaces share.
type core struct {
	cfg          config
	clock        *clock
	wrapped      bool
	conn         Conn
	ownConn      *zk.Conn        // conn if Connect made it; nil for a wrapped connection
	lastSeenZxid *lastzxid.Seen  // across the connections of one session; only dial uses it
	events       <-chan zk.Event // closed when conn has ended

	timeout atomic.Int64 // a time.Duration: the session timeout, as requested and later as negotiated

	lifecycle
	probeSoon chan struct{} // makes probeLoop probe at once; capacity 1
	ready     chan struct{} // closed when the first session is established
	refused   chan error    // gets the reason if a server refused the credentials; capacity 1
	watches   watchTable

	seenZxid     atomic.Int64 // the greatest zxid of a Stat
	noContainers atomic.Bool  // the server does not support containers
	demanded     atomic.Bool  // the server has closed the connection because it demands an identity
	shared       sync.Map     // by sharedKey; see Client.Shared

	mu              sync.Mutex // guards the fields below; never held while waiting
	state           ConnState
	session         *Session
	netConn         *sessionConn
	connectErr      error                          // why the latest attempt to connect failed
	reconnectSignal chan struct{}                  // closed when the connection is restored
	stateReaders    map[chan ConnState]func() bool // the value stops watching the reader's ctx
	// ephemerals holds the paths of ephemerals of the current session, for a wrapped connection
	// only: nobody else can end a session that was declared lost. Some of them may be gone, or may
	// never have existed.
	ephemerals map[string]struct{}
}

func newCore(cfg config, wrapped bool) *core {
	k := &core{
		cfg:             cfg,
		wrapped:         wrapped,
		lastSeenZxid:    new(lastzxid.Seen),
		clock:           newClock(cfg.suspended),
		lifecycle:       newLifecycle(),
		probeSoon:       make(chan struct{}, 1),
		ready:           make(chan struct{}),
		refused:         make(chan error, 1),
		stateReaders:    make(map[chan ConnState]func() bool),
		reconnectSignal: make(chan struct{}),
	}
	k.timeout.Store(int64(cfg.timeout))
	return k
}

// start waits for the first session and adds the credentials. op names the operation in errors.
func (k *core) start(ctx context.Context, op string) error {
	// Ends when the Client is closed; Close waits.
	k.loops.Go(k.probeLoop)
	if err := k.awaitReady(ctx, op); err != nil {
		return fmt.Errorf("recipes: %s: %w", op, err)
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

// The pauses between the log lines of a Client that waits for its first session.
const (
	firstWaitReport = 5 * time.Second
	lastWaitReport  = time.Minute
)

// awaitReady waits for the first session, and says from time to time why there is none.
func (k *core) awaitReady(ctx context.Context, op string) error {
	begun, wait := k.now(), firstWaitReport
	report := time.NewTimer(wait)
	defer report.Stop()
	for {
		select {
		case <-k.ready:
			return nil
		case err := <-k.refused:
			return err
		case <-ctx.Done():
			return fmt.Errorf("%w; %w", context.Cause(ctx), k.latestFailure())
		case <-k.closing:
			return ErrClosed
		case <-report.C:
			k.cfg.waitLogger.Printf("recipes: %s: no session after %v, still trying; %v", op, (k.now() - begun).Round(time.Second), k.latestFailure())
			wait = min(2*wait, lastWaitReport)
			report.Reset(wait)
		}
	}
}

// latestFailure says why there is no session.
func (k *core) latestFailure() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.connectErr == nil {
		return errNoAnswer
	}
	return fmt.Errorf("the latest attempt: %w", k.connectErr)
}

var errNoAnswer = errors.New("no server has answered so far")

// noteDemand returns ErrIdentityDemanded in place of its code, and otherwise err. The server has
// closed the connection then, and would close the next one too.
func (k *core) noteDemand(err error) error {
	if err == nil || !isCode(err, -124) {
		return err
	}
	k.demanded.Store(true)
	return ErrIdentityDemanded
}

// connectFailed notes why an attempt to connect has failed.
func (k *core) connectFailed(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.connectErr = err
}

func (k *core) close() error {
	var unanswered int
	k.closeOnce.Do(func() {
		k.calls.close()
		limit := time.Duration(k.timeout.Load()) / 3
		k.calls.wait(limit)
		k.cancel()
		k.mu.Lock()
		connected := k.state == Connected || k.state == Reconnected
		session := k.session
		k.setState(Closed) // before the session ends, so that the state does not become Lost
		k.mu.Unlock()
		if session != nil {
			session.end(ErrClosed) // before the server can end it
			k.deleteWrappedEphemerals(session, limit/2)
		}
		close(k.closing)
		if k.ownConn != nil {
			if !connected {
				k.closeNetConn() // go-zookeeper does not notice Close during a handshake
			}
			k.ownConn.Close()
			k.closeNetConn()
			for range k.events { // until go-zookeeper's loop has ended
			}
			limit = time.Hour // the rest ends by itself, as its connection has
		}
		unanswered = k.calls.wait(limit) + k.activeProbes.wait(limit)
		if unanswered == 0 {
			k.loops.Wait()
		}
	})
	if unanswered > 0 {
		return fmt.Errorf("recipes: close: %d calls of the wrapped connection are still unanswered", unanswered)
	}
	return nil
}

// deleteWrappedEphemerals deletes the ephemerals of a session that stays alive with the wrapped
// connection, in the background and for about limit.
func (k *core) deleteWrappedEphemerals(s *Session, limit time.Duration) {
	if !k.wrapped {
		return
	}
	k.calls.add()
	// Ends when the connection has answered or given up; Close waits.
	go func() {
		defer k.calls.done()
		for start := k.now(); ; time.Sleep(backoff.First) {
			err := k.deleteEphemerals(s.id)
			if err == nil || classify(err) == stopped || k.now()-start > limit {
				return
			}
		}
	}()
}

func (k *core) now() time.Duration { return k.clock.now() }

// maxReconnectPause returns the longest pause between two attempts to connect while the session can
// still be saved, and 0 if the session is lost.
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

// event follows the connection's state. With Connect, go-zookeeper's goroutines call event and may
// hold go-zookeeper's locks. With Wrap, some events may be missing.
func (k *core) event(e zk.Event) {
	if e.Type != zk.EventSession {
		return
	}
	switch e.State {
	case zk.StateHasSession:
		if k.wrapped { // only an answer proves that the session is alive
			k.mu.Lock()
			k.signalReconnect()
			k.mu.Unlock()
			select {
			case k.probeSoon <- struct{}{}:
			default:
			}
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

// markConnected sets the state to Connected or Reconnected if the session is alive.
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

// sessionGranted is called when the server has granted or resumed the session id, and reports
// whether the session may be used. sent is when the handshake's request was sent.
func (k *core) sessionGranted(id int64, timeout, sent time.Duration) bool {
	k.timeout.Store(int64(timeout))
	s := k.currentSession()
	if s != nil && s.id == id {
		return s.resume(sent, timeout)
	}
	k.setSession(newSession(id, k.clock, sent, timeout, k.sessionLost))
	if s != nil {
		s.end(ErrSessionLost) // ended already, since go-zookeeper was told that it had expired
	}
	return true
}

// setSession makes s the current session.
func (k *core) setSession(s *Session) {
	k.mu.Lock()
	closed := k.state == Closed
	k.session = s
	clear(k.ephemerals)
	k.mu.Unlock()
	if closed {
		s.end(ErrClosed)
	} else if s.ended.Load() {
		k.sessionLost(s) // s ended before it was the current session
	}
}

// sessionLost is called when a session has ended, and closes the session's network connection if
// Connect made that connection; sessionConn refuses to resume the session.
func (k *core) sessionLost(s *Session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s != k.session || k.state == Closed {
		return
	}
	if k.state != Connecting {
		if k.state != Lost {
			// the connection may not have noticed yet that the server is silent
			k.setState(Suspended)
		}
		k.setState(Lost)
	}
	if w := k.netConn; w != nil {
		// Closing may take a while, and a caller that looks at the session's Context must not wait.
		k.background(func(context.Context) { _ = w.Conn.Close() })
	}
}
