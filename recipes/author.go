package recipes

import (
	"context"
	"errors"
	"fmt"

	"github.com/gozkd/gozkd/recipes/internal/author"
)

// forRecipes implements author.Client.
type forRecipes struct{ *Client }

func init() {
	author.Of = func(client any) author.Client { return forRecipes{client.(*Client)} }
	author.JoinHolds = func(a, b any) any { return joinHolds(a.(*Hold), b.(*Hold)) }
	author.EndHold = func(hold any) { hold.(*Hold).cancel(ErrNotHeld) }
	author.Session = func(hold any) any { return hold.(*Hold).session }
	author.Refused = func(err error) bool {
		var e *Error
		return errors.As(err, &e) && (!e.Unknown && classify(e.Err) == answered || errors.Is(err, ErrHungUp))
	}
}

func (c forRecipes) NewHold(h author.Hold) any { return c.newHold(h) }

func (c forRecipes) Background(ctx context.Context, f func(ctx context.Context)) error {
	k := c.core
	if !k.beginCall(ctx) {
		return &Error{"go on in the background", c.absolute("/"), ErrClosed, false}
	}
	defer k.calls.done()
	k.background(func(ctx context.Context) { f(context.WithValue(ctx, backgroundKey{}, k)) })
	return nil
}

func (c forRecipes) Logf(format string, args ...any) {
	c.core.cfg.log.Warn(fmt.Sprintf(format, args...))
}

// backgroundKey is the context key under which the ctx of Background holds its core.
type backgroundKey struct{}

// beginCall counts a call, at whose end k.calls.done must be called. The result is false after
// Close has begun, except for a caller in the background, for which Close waits.
func (k *core) beginCall(ctx context.Context) bool {
	if ctx.Value(backgroundKey{}) == k {
		k.calls.add()
		return true
	}
	return k.calls.tryAdd()
}

func (c forRecipes) Shared(key any, make func() any) any {
	k := sharedKey{c.root, key}
	if v, ok := c.core.shared.Load(k); ok {
		return v
	}
	v, _ := c.core.shared.LoadOrStore(k, make())
	return v
}

type sharedKey struct {
	root string
	key  any
}
