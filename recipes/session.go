package recipes

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/recipes/internal/checkedctx"
)

// Session is a session with the server, until it has or may have ended. Safe for concurrent use.
type Session struct {
	id     int64
	clock  *clock
	inner  context.Context // without a look at the clock
	ctx    context.Context
	cancel context.CancelCauseFunc // of ctx
	onEnd  func(*Session)          // called once, without locks, after the session has ended

	expiresAt atomic.Int64 // a time.Duration on clock; from then on the session may have ended
	ended     atomic.Bool

	mu       sync.Mutex // guards the end of the session, changes of expiresAt, and the fields below
	timer    *time.Timer
	lifetime time.Duration // after the leader last heard of the session
}

// newSession returns a session that the leader has heard of at heard or later.
func newSession(id int64, clock *clock, heard, timeout time.Duration, onEnd func(*Session)) *Session {
	s := &Session{id: id, clock: clock, onEnd: onEnd, lifetime: lifetime(timeout)}
	until := heard + s.lifetime
	inner, cancel := context.WithCancelCause(context.Background())
	s.inner, s.ctx, s.cancel = inner, checkedctx.New(inner, s.check), cancel
	s.expiresAt.Store(int64(until))
	s.mu.Lock() // onTimer may run before s.timer is set
	s.timer = time.AfterFunc(until-clock.now(), s.onTimer)
	s.mu.Unlock()
	return s
}

// ID returns the server's number of the session, which is the EphemeralOwner of its ephemerals.
func (s *Session) ID() int64 { return s.id }

// Context ends when the session has ended or may have, no later than the server can end the
// session. Its cause is ErrSessionLost, or ErrClosed if the Client was closed. If a gozkd server is
// the first to know, the cause also has a client.ExpiredError, which says why. Err and Done look at
// the clock themselves, so a process that was stopped for longer than the session lives learns of
// the loss from its first call. Contexts derived with package context learn of the loss from a
// timer, a moment later; those of Within look at the clock too.
func (s *Session) Context() context.Context { return s.ctx }

// Within returns a context for requests that only make sense in this session. The context has the
// values of ctx, ends when ctx or the session ends, with the cause of that end, and looks at the
// clock as Context does. The returned function must be called.
func (s *Session) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return checkedctx.Within(ctx, s.ctx)
}

// extend notes that the leader heard of the session at heard or later. The result is false if the
// session has ended, which is final.
func (s *Session) extend(heard time.Duration) bool {
	s.check()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended.Load() {
		return false
	}
	s.expiresAt.Store(max(s.expiresAt.Load(), int64(heard+s.lifetime)))
	return true
}

// resume notes that a server has resumed the session, with heard as the time of the request. A
// server with another configuration may grant a shorter timeout, so the session may now end earlier
// than before. The result is false if the session has ended.
func (s *Session) resume(heard, timeout time.Duration) bool {
	s.check()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended.Load() {
		return false
	}
	s.lifetime = lifetime(timeout)
	until := heard + s.lifetime
	s.expiresAt.Store(int64(until))
	s.timer.Reset(until - s.clock.now())
	return true
}

// remaining returns for how long the session certainly lives.
func (s *Session) remaining() time.Duration { return time.Duration(s.expiresAt.Load()) - s.clock.now() }

func (s *Session) check() {
	if !s.ended.Load() && s.remaining() <= 0 {
		s.end(nil)
	}
}

// end ends the session with cause. A nil cause ends the session only if its time is over.
func (s *Session) end(cause error) {
	s.mu.Lock()
	if s.ended.Load() || cause == nil && s.remaining() > 0 {
		s.mu.Unlock()
		return
	}
	cause = cmp.Or(cause, error(ErrSessionLost))
	s.timer.Stop()
	s.ended.Store(true)
	s.cancel(cause)
	s.mu.Unlock()
	s.onEnd(s)
}

// onTimer runs at the expiry time that was known when the timer was set.
func (s *Session) onTimer() {
	s.check()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended.Load() {
		// At least a millisecond: a clock that counts suspensions can differ from the timer's.
		s.timer.Reset(max(time.Millisecond, s.remaining()))
	}
}
