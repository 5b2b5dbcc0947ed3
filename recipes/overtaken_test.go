package recipes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/zktest"
)

// TestOvertaken is the rest of G3: a write was applied, its answer was lost, and others have
// changed the znode before the retry. The answer to the retry then proves nothing, so the write
// must not be reported as not applied.
func TestOvertaken(t *testing.T) {
	for name, tc := range map[string]struct {
		op    zktest.Op
		do    func(ctx context.Context, c *recipes.Client) error
		other map[string]string // the znodes after the other client's change
		want  error
	}{
		"set, changed": {zktest.Set, func(ctx context.Context, c *recipes.Client) error {
			_, err := c.Idempotent().Set(ctx, "/dir/z", []byte("mine"), 0)
			return err
		}, map[string]string{"/dir/z": "other"}, proto.ErrBadVersion},
		"set, deleted": {zktest.Set, func(ctx context.Context, c *recipes.Client) error {
			_, err := c.Idempotent().Set(ctx, "/dir/z", []byte("mine"), 0)
			return err
		}, nil, proto.ErrNoNode},
		"create, changed": {zktest.Create, func(ctx context.Context, c *recipes.Client) error {
			_, err := c.Idempotent().Create(ctx, "/dir/n", []byte("mine"), recipes.CreateOptions{})
			return err
		}, map[string]string{"/dir/n": "other"}, proto.ErrNodeExists},
		"delete, made again": {zktest.Delete, func(ctx context.Context, c *recipes.Client) error {
			return c.Idempotent().Delete(ctx, "/dir/z", 0)
		}, map[string]string{"/dir/z": "again", "/dir/z/child": ""}, proto.ErrNotEmpty},
	} {
		recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
			w.Load(map[string]string{"/dir": "", "/dir/z": "old"})
			c := w.Client(recipes.Retry(recipes.Times(3, time.Second)))
			dropped := w.DropReply(tc.op)
			var err error
			done := make(chan struct{})
			go func() { // ends with its attempt
				defer close(done)
				err = tc.do(t.Context(), c)
			}()
			dropped.Wait()
			if tc.other == nil {
				deleteAt(t, w, "/dir/z")
			} else {
				w.Load(tc.other)
			}
			<-done
			if !errors.Is(err, tc.want) || !errors.Is(err, recipes.ErrOutcomeUnknown) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// deleteAt deletes a znode on behalf of another client.
func deleteAt(t testing.TB, w *recipetest.World, path string) {
	t.Helper()
	if err := w.Connect(t).Delete(path, -1); err != nil {
		t.Fatal(err)
	}
}
