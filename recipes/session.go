package recipes

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Session is one session with the server, from the moment the Client has it until it is, or may be, over. Safe for concurrent use.
type Session struct {
	id    int64
	clock *clock
	ctx   *lease
	onEnd func(*Session) // called once, without locks, when the session has ended

	expiresAt atomic.Int64 // a time.Duration on clock; from then on the session may be over
	ended     atomic.Bool

	mu       sync.Mutex // guards the step from alive to ended, changes of until, and what follows
	timer    *time.Timer
	lifetime time.Duration // after it was heard from
}

// newSession returns a session with that timeout, which the leader has heard from then, or later.
func newSession(id int64, clock *clock, heard, timeout time.Duration, over func(*Session)) *Session {
	s := &Session{id: id, clock: clock, onEnd: over, lifetime: lifetime(timeout)}
	until := heard + s.lifetime
	inner, cancel := context.WithCancelCause(context.Background())
	s.ctx = &lease{inner, cancel, s}
	s.expiresAt.Store(int64(until))
	s.mu.Lock() // the timer may run before it is stored
	s.timer = time.AfterFunc(until-clock.now(), s.onTimer)
	s.mu.Unlock()
	return s
}

// ID returns the server's number of the session: that of its ephemerals' owner.
func (s *Session) ID() int64 { return s.id }

// Context is cancelled when the session is over or may be, at the latest when the server could end it; context.Cause is then ErrSessionLost,
// or ErrClosed if the Client was closed. Its Err and Done look at the clock themselves: who was stopped for longer than the
// session lives learns of it at the first look. Contexts that are derived from it with package context learn of it from a timer, a
// moment later; those of WithCancel and Within at the first look.
func (s *Session) Context() context.Context { return s.ctx }

// WithCancel returns a context that ends with the session or with cancel, and looks at the clock as Context does. cancel must be called,
// or what belongs to the context stays until the session ends.
func (s *Session) WithCancel() (ctx context.Context, cancel context.CancelCauseFunc) {
	inner, cancel := context.WithCancelCause(s.ctx)
	return &lease{inner, cancel, s}, cancel
}

// Within returns a context that ends with ctx or with the session, whichever ends first, with the cause of that one, and has the values
// of ctx: for requests that only make sense in this session. It looks at the clock as Context does. The function must be called.
func (s *Session) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return within(ctx, s.ctx)
}

// within is ctx that also ends when other does, with its cause, and looks at other before it answers.
func within(ctx, other context.Context) (context.Context, context.CancelFunc) {
	inner, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(other, func() { end(context.Cause(other)) })
	return &both{inner, end, other}, func() {
		stop()
		end(nil)
	}
}

// both is a context that ends with another one too.
type both struct {
	context.Context
	end   context.CancelCauseFunc
	other context.Context
}

func (b *both) look() {
	if b.other.Err() != nil {
		b.end(context.Cause(b.other))
	}
}

func (b *both) Done() <-chan struct{} {
	b.look()
	return b.Context.Done()
}

func (b *both) Err() error {
	b.look()
	return b.Context.Err()
}

func (b *both) Value(key any) any {
	b.look() // context.Cause asks for a value
	return b.Context.Value(key)
}

// Remaining returns for how long the session surely lives, without further word from the server; 0 when it is over.
func (s *Session) Remaining() time.Duration {
	s.check()
	if s.ended.Load() {
		return 0
	}
	return max(0, time.Duration(s.expiresAt.Load())-s.clock.now())
}

// extend notes that the leader has heard from the session then, or later. False if it is over, which it then stays.
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

// resume notes that the session was taken up again then, with that timeout: a server with another configuration may give a shorter one, and
// so end it sooner than it would have ended before. False as with extend.
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

// check ends the session if its time is over.
func (s *Session) check() {
	if !s.ended.Load() && s.clock.now() >= time.Duration(s.expiresAt.Load()) {
		s.end(nil)
	}
}

// end ends the session with that cause, or with nil if its time is still over under the lock.
func (s *Session) end(cause error) {
	s.mu.Lock()
	if s.ended.Load() || cause == nil && s.clock.now() < time.Duration(s.expiresAt.Load()) {
		s.mu.Unlock()
		return
	}
	if cause == nil {
		cause = ErrSessionLost
	}
	s.timer.Stop()
	s.ended.Store(true)
	s.ctx.cancel(cause)
	s.mu.Unlock()
	s.onEnd(s)
}

// wake runs at the time that was the session's end when the timer was set.
func (s *Session) onTimer() {
	s.check()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended.Load() {
		// Never shorter than this: a clock that counts suspensions may differ from the timer's.
		s.timer.Reset(max(time.Millisecond, time.Duration(s.expiresAt.Load())-s.clock.now()))
	}
}

// lease is a context that looks at the session's clock before it answers. Its inner context is one of package context, so that contexts
// derived from it need no goroutine, and context.Cause finds the cause.
type lease struct {
	context.Context
	cancel  context.CancelCauseFunc
	session *Session
}

func (l *lease) Done() <-chan struct{} {
	l.session.check()
	return l.Context.Done()
}

func (l *lease) Err() error {
	l.session.check()
	return l.Context.Err()
}

func (l *lease) Value(key any) any {
	l.session.check() // context.Cause asks for a value
	return l.Context.Value(key)
}
