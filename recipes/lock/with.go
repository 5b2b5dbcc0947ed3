package lock

import "context"

// held is what With holds while it runs.
type held interface {
	Within(ctx context.Context) (in context.Context, cancel context.CancelFunc)
}

// with runs f while h is held, and lets go of it, also when f panics. That this goes on in the background is no error.
func with(ctx context.Context, h held, letGo func(context.Context) error, f func(context.Context) error) (err error) {
	in, cancel := h.Within(ctx)
	defer func() {
		cancel()
		if e := letGo(ctx); e != nil && !onlyUnknown(e) {
			err = join(err, e)
		}
	}()
	return f(in)
}

func withLock(ctx context.Context, from Locker, f func(ctx context.Context) error) error {
	l, err := from.Lock(ctx)
	if err != nil {
		return err
	}
	return with(ctx, l, l.Unlock, f)
}
