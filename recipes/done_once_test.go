package recipes_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/zktest"
)

// TestLostReply_OtherClient lets another client write after a write whose answer is lost. The first
// client must neither repeat its write nor take the other's for its own.
func TestLostReply_OtherClient(t *testing.T) {
	create := func(ctx context.Context, c *recipes.Client) error {
		_, err := c.Create(ctx, "/dir/n", []byte("same"), recipes.CreateOptions{})
		return err
	}
	remove := func(path string) func(ctx context.Context, c *recipes.Client) error {
		return func(ctx context.Context, c *recipes.Client) error { return c.Delete(ctx, path, -1) }
	}
	set := func(data string, version int32) func(ctx context.Context, c *recipes.Client) error {
		return func(ctx context.Context, c *recipes.Client) error {
			_, err := c.Set(ctx, "/dir/z", []byte(data), version)
			return err
		}
	}
	recreate := func(ctx context.Context, c *recipes.Client) error {
		_, err := c.Create(ctx, "/dir/z", []byte("theirs"), recipes.CreateOptions{})
		return err
	}
	for _, tc := range []struct {
		name     string
		fault    zktest.Op
		do, then func(ctx context.Context, c *recipes.Client) error
		path     string
		want     string // data of path afterwards; "" if there must be no znode
	}{
		{"delete", zktest.Delete, remove("/dir/z"), recreate, "/dir/z", "theirs"},
		{"set any", zktest.Set, set("ours", -1), set("theirs", -1), "/dir/z", "theirs"},
		{"set a version", zktest.Set, set("same", 0), set("same", 1), "/dir/z", "same"},
		{"create", zktest.Create, create, remove("/dir/n"), "/dir/n", ""},
	} {
		for _, kind := range recipetest.Kinds() {
			t.Run(tc.name+"/"+string(kind), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := zktest.Start(t)
					s.Load(map[string]string{"/dir": "", "/dir/z": "old"})
					c := recipetest.Open(t, kind, s.Service, 20*time.Second)
					other := recipetest.Open(t, kind, s.Service, 20*time.Second)
					f := s.DropReply(tc.fault)
					result := make(chan error, 1)
					go func() { result <- tc.do(t.Context(), c) }() // ends before the test
					f.Wait()
					if err := tc.then(t.Context(), other); err != nil {
						t.Error(err)
					}
					if err := <-result; !errors.Is(err, recipes.ErrOutcomeUnknown) {
						t.Errorf("error %v, want outcome unknown", err)
					}
					if tc.want == "" {
						s.AssertMissing(tc.path)
					} else {
						s.AssertData(tc.path, tc.want)
					}
				})
			})
		}
	}
}

// TestLostReply_TwoCreators checks that only one of two clients is told that it created a znode.
func TestLostReply_TwoCreators(t *testing.T) {
	bubbles(t, func(t *testing.T, kind recipetest.Kind) {
		s := zktest.Start(t)
		create := func(c *recipes.Client) error {
			_, err := c.Create(t.Context(), "/n", []byte("same"), recipes.CreateOptions{})
			return err
		}
		first, second := recipetest.Open(t, kind, s.Service, 20*time.Second), recipetest.Open(t, kind, s.Service, 20*time.Second)
		if err := create(first); err != nil {
			t.Fatal(err)
		}
		f := s.DropReply(zktest.Create)
		if err := create(second); !errors.Is(err, recipes.ErrOutcomeUnknown) {
			t.Errorf("error %v, want outcome unknown", err)
		}
		f.Wait()
	})
}

// TestConnectionLost_NotApplied checks that a write is repeated if the znodes show that it was not
// applied.
func TestConnectionLost_NotApplied(t *testing.T) {
	bubbles(t, func(t *testing.T, kind recipetest.Kind) {
		ctx := t.Context()
		s := zktest.Start(t)
		s.Load(map[string]string{"/dir": "", "/dir/y": "", "/dir/z": ""})
		c := recipetest.Open(t, kind, s.Service, 20*time.Second)
		if _, _, err := c.Get(ctx, "/dir/z"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.Children(ctx, "/dir"); err != nil {
			t.Fatal(err)
		}
		const connectionLoss = -4 // as if the request had been lost with the connection
		s.FailNext(zktest.Set, connectionLoss)
		if stat, err := c.Set(ctx, "/dir/z", []byte("new"), -1); err != nil || stat.Version != 1 {
			t.Errorf("%+v, %v", stat, err)
		}
		s.FailNext(zktest.Create, connectionLoss)
		if _, err := c.Create(ctx, "/dir/n", nil, recipes.CreateOptions{}); err != nil {
			t.Error(err)
		}
		s.FailNext(zktest.Delete, connectionLoss)
		if err := c.Delete(ctx, "/dir/y", -1); err != nil {
			t.Error(err)
		}
		s.AssertMissing("/dir/y")
	})
}

// TestLostReply_Refused checks that the outcome is unknown if the server refuses the requests that
// would show what became of a write, or its repetition.
func TestLostReply_Refused(t *testing.T) {
	create := func(o recipes.CreateOptions) func(ctx context.Context, c *recipes.Client) error {
		return func(ctx context.Context, c *recipes.Client) error {
			_, err := c.Create(ctx, "/dir/n", []byte("ours"), o)
			return err
		}
	}
	remove := func(ctx context.Context, c *recipes.Client) error { return c.Delete(ctx, "/dir/z", -1) }
	set := func(ctx context.Context, c *recipes.Client) error {
		_, err := c.Set(ctx, "/dir/z", []byte("ours"), -1)
		return err
	}
	for _, tc := range []struct {
		name        string
		op, refused zktest.Op
		idempotent  bool
		do          func(ctx context.Context, c *recipes.Client) error
	}{
		{"delete", zktest.Delete, zktest.Sync, false, remove},
		{"set", zktest.Set, zktest.Sync, false, set},
		{"create", zktest.Create, zktest.Sync, false, create(recipes.CreateOptions{})},
		{"create protected", zktest.Create, zktest.Children, false, create(recipes.CreateOptions{Protected: true})},
		{"delete again", zktest.Delete, zktest.Delete, true, remove},
		{"set again", zktest.Set, zktest.Set, true, set},
		{"create again", zktest.Create, zktest.Create, true, create(recipes.CreateOptions{})},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubbles(t, func(t *testing.T, kind recipetest.Kind) {
				s := zktest.Start(t)
				s.Load(map[string]string{"/dir": "", "/dir/z": "old"})
				c := recipetest.Open(t, kind, s.Service, 20*time.Second)
				if tc.idempotent {
					c = c.Idempotent()
				}
				f := s.DropReply(tc.op, zktest.OnPath("/dir/"))
				result := make(chan error, 1)
				go func() { result <- tc.do(t.Context(), c) }() // ends before the test
				f.Wait()
				s.FailNext(tc.refused, proto.ErrNoAuth, zktest.OnPath("/dir"))
				if err := <-result; !errors.Is(err, recipes.ErrOutcomeUnknown) || !errors.Is(err, proto.ErrNoAuth) {
					t.Errorf("error %v, want outcome unknown and not authenticated", err)
				}
			})
		})
	}
}

// TestLostReply_CreatedAgain lets an idempotent Create find another client's znode, which was there
// before, or was created after this client's znode had been deleted.
func TestLostReply_CreatedAgain(t *testing.T) {
	for _, before := range []bool{true, false} {
		bubbles(t, func(t *testing.T, kind recipetest.Kind) {
			ctx := t.Context()
			s := zktest.Start(t)
			c, other := recipetest.Open(t, kind, s.Service, 20*time.Second), recipetest.Open(t, kind, s.Service, 20*time.Second)
			theirs := func() {
				if _, err := other.Create(ctx, "/n", []byte("theirs"), recipes.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
			if before {
				theirs()
				if _, err := c.Exists(ctx, "/n"); err != nil {
					t.Error(err)
				}
			}
			f := s.DropReply(zktest.Create)
			result := make(chan error, 1)
			go func() { // ends before the test
				_, err := c.Idempotent().Create(ctx, "/n", []byte("ours"), recipes.CreateOptions{})
				result <- err
			}()
			f.Wait()
			if !before {
				if err := other.Delete(ctx, "/n", -1); err != nil {
					t.Error(err)
				}
				theirs()
			}
			err := <-result
			if !errors.Is(err, proto.ErrNodeExists) || errors.Is(err, recipes.ErrOutcomeUnknown) == before {
				t.Errorf("there before: %v; error %v", before, err)
			}
		})
	}
}
