package shared

import (
	"context"
	"time"
)

// looking is a context that looks whether it is over before it answers. Its inner context is one of package context, so that contexts
// derived from it need no goroutine, and context.Cause finds the cause.
type looking struct {
	context.Context
	cancel context.CancelCauseFunc
	look   func() error // the cause if it is over
}

func (l *looking) check() {
	if cause := l.look(); cause != nil {
		l.cancel(cause)
	}
}

func (l *looking) Done() <-chan struct{} {
	l.check()
	return l.Context.Done()
}

func (l *looking) Err() error {
	l.check()
	return l.Context.Err()
}

func (l *looking) Value(key any) any {
	l.check() // context.Cause asks for a value
	return l.Context.Value(key)
}

// untilTime is a context that ends at a time of day, or with cancel, which must be called or waited for.
func untilTime(end time.Time) (context.Context, context.CancelCauseFunc) {
	inner, cancel := context.WithCancelCause(context.Background())
	l := &looking{inner, cancel, func() error {
		if time.Now().Before(end) {
			return nil
		}
		return ErrLeaseOver
	}}
	timer := time.AfterFunc(time.Until(end), func() { cancel(ErrLeaseOver) })
	return l, func(cause error) {
		timer.Stop()
		cancel(cause)
	}
}

// whileAlive is ctx that ends with other too, with its cause. cancel must be called.
func whileAlive(ctx, other context.Context) (in context.Context, cancel context.CancelFunc) {
	inner, end := context.WithCancelCause(ctx)
	l := &looking{inner, end, func() error {
		if other.Err() == nil {
			return nil
		}
		return context.Cause(other)
	}}
	stop := context.AfterFunc(other, l.check)
	return l, func() {
		stop()
		end(nil)
	}
}
