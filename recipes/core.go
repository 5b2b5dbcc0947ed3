package recipes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/internal/requesthook"
	"github.com/gozkd/gozkd/recipes/internal/coalesce"
)

// core is the state that a Client and its namespaces share.
type core struct {
	cfg   config
	clock *clock
	conn  transport
	// window bounds the requests of conn that are under way, except probes.
	window *window
	hook   requesthook.Func // nil except in tests

	timeout atomic.Int64 // a time.Duration: the session timeout, as requested and later as negotiated

	lifecycle
	probeSoon chan struct{} // makes probeLoop probe at once; capacity 1
	ready     chan struct{} // closed when the first session is established
	refused   chan error    // gets the reason if a server refused the credentials; capacity 1

	noContainers atomic.Bool                // the server does not support containers
	shared       sync.Map                   // by sharedKey; see Shared
	siblings     coalesce.Calls[readResult] // of protected creates, by parent

	mu           sync.Mutex // guards the fields below; never held while waiting
	state        ConnState
	session      *Session
	connectErr   error                          // why the latest attempt to connect failed
	stateReaders map[chan ConnState]func() bool // the value stops watching the reader's ctx
	connection   context.Context                // ends when the state is not Connected or Reconnected any longer
	disconnect   context.CancelFunc             // of connection
}

func newCore(cfg config) *core {
	k := &core{
		cfg:          cfg,
		clock:        &clock{origin: time.Now(), suspended: cfg.suspended, suspendedAtStart: cfg.suspended()},
		lifecycle:    newLifecycle(),
		probeSoon:    make(chan struct{}, 1),
		ready:        make(chan struct{}),
		refused:      make(chan error, 1),
		stateReaders: make(map[chan ConnState]func() bool),
	}
	k.window = newWindow(k)
	k.connection, k.disconnect = context.WithCancel(context.Background())
	k.timeout.Store(int64(cfg.timeout))
	return k
}

// start waits for the first session. op names the operation in errors.
func (k *core) start(ctx context.Context, op string) error {
	// Ends when the Client is closed; Close waits.
	k.loops.Go(k.probeLoop)
	if err := k.awaitReady(ctx, op); err != nil {
		return fmt.Errorf("recipes: %s: %w", op, err)
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
	begun, wait := k.clock.now(), firstWaitReport
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
			waited := (k.clock.now() - begun).Round(time.Second)
			k.cfg.waitLog.Warn(fmt.Sprintf("recipes: %s: no session after %v, still trying; %v", op, waited, k.latestFailure()))
			wait = min(2*wait, lastWaitReport)
			report.Reset(wait)
		}
	}
}

func (k *core) latestFailure() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.connectErr == nil {
		return errors.New("no server has answered so far")
	}
	return fmt.Errorf("the latest attempt: %w", k.connectErr)
}

func (k *core) connectFailed(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.connectErr = err
}

func (k *core) close() error {
	if !k.closeBegun.CompareAndSwap(false, true) {
		<-k.closed
		return nil
	}
	defer close(k.closed)
	k.calls.close()
	limit := time.Duration(k.timeout.Load()) / 3
	k.calls.wait(limit)
	k.cancel()
	k.mu.Lock()
	session := k.session
	k.setState(Closed) // before the session ends, so that the state does not become Lost
	k.mu.Unlock()
	if session != nil {
		session.end(ErrClosed) // before the server can end it
	}
	close(k.closing)
	k.window.close()
	k.activeProbes.close()
	if unanswered := k.conn.close(session, limit); unanswered > 0 {
		return fmt.Errorf("recipes: close: %d calls of the wrapped connection are still unanswered", unanswered)
	}
	k.loops.Wait()
	return nil
}

func (k *core) isClosed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state == Closed
}

func (k *core) currentSession() *Session {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.session
}

// markConnected sets the state to Connected or Reconnected if the session is alive, and reports
// whether the state is another one now.
func (k *core) markConnected() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.session == nil || k.session.ended.Load() {
		return false
	}
	switch k.state {
	case Connecting:
		k.setState(Connected)
		close(k.ready)
		return true
	case Suspended, Lost, ReadOnly:
		k.setState(Reconnected)
		return true
	case Connected, Reconnected, Closed:
	}
	return false
}

// leaveState changes the state to next if the state is one of these.
func (k *core) leaveState(next ConnState, these ...ConnState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if slices.Contains(these, k.state) {
		k.setState(next)
	}
}

func (k *core) markSuspended() { k.leaveState(Suspended, Connected, Reconnected) }

// sessionGranted is called when the server has granted or resumed the session id, and reports
// whether the session may be used. sent is when the handshake's request was sent, or earlier.
func (k *core) sessionGranted(id int64, timeout, sent time.Duration) bool {
	k.timeout.Store(int64(timeout))
	s := k.currentSession()
	if s != nil && s.id == id {
		return s.resume(sent, timeout)
	}
	k.setSession(newSession(id, k.clock, sent, timeout, k.sessionLost))
	if s != nil {
		s.end(ErrSessionLost)
	}
	return true
}

func (k *core) setSession(s *Session) {
	k.mu.Lock()
	closed := k.state == Closed
	k.session = s
	k.mu.Unlock()
	if closed {
		s.end(ErrClosed)
	} else if s.ended.Load() {
		k.sessionLost(s) // s ended before it was the current session
	}
}

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
}
