package contend_test

import (
	"context"
	"errors"
	"testing"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/calls"
)

// TestRegress_CanceledIsRefused checks the error of a wait whose ctx ends: no server refused it.
func TestRegress_CanceledIsRefused(t *testing.T) {
	deadline, stop := context.WithTimeout(t.Context(), 0)
	defer stop()
	canceled, cancel := context.WithCancelCause(t.Context())
	cancel(recipes.ErrSessionLost)
	plain, cancelPlain := context.WithCancel(t.Context())
	cancelPlain()
	for _, ctx := range []context.Context{deadline, canceled, plain} {
		err := calls.Await(ctx, "wait at", "/a", make(chan struct{}))
		if recipes.Refused(err) || !errors.Is(err, ctx.Err()) || !errors.Is(err, context.Cause(ctx)) {
			t.Errorf("%#v", err)
		}
	}
}
