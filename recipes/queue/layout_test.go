package queue_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/queue"
)

// TestLayout compares znodes with those of Curator and kazoo, byte for byte.
func TestLayout(t *testing.T) {
	// "x", encoded by Curator's ItemSerializer
	const framed = "00010001" + "01" + "00000001" + "78" + "02"
	due := time.UnixMilli(0x18F0A1B2C3D)
	for name, test := range map[string]struct {
		put  func(ctx context.Context, c *recipes.Client) error
		want map[string]string // data in hexadecimal, by path
	}{
		"simple": {
			func(ctx context.Context, c *recipes.Client) error {
				return queue.NewSimple(c, "/q").Put(ctx, []byte("x"))
			},
			map[string]string{"/q": "", "/q/qn-0000000000": "78"},
		},
		"curator": {
			func(ctx context.Context, c *recipes.Client) error { return queue.New(c, "/q").Put(ctx, []byte("x")) },
			map[string]string{"/q": "", "/q/queue-0000000000": framed},
		},
		"all": {
			func(ctx context.Context, c *recipes.Client) error {
				return queue.New(c, "/q").Put(ctx, []byte("x"), []byte("x"))
			},
			map[string]string{"/q": "", "/q/queue-0000000000": framed, "/q/queue-0000000001": framed},
		},
		"priority": {
			func(ctx context.Context, c *recipes.Client) error {
				q := queue.NewPriority(c, "/q")
				return errors.Join(q.Put(ctx, 171, []byte("x")), q.Put(ctx, -1, []byte("x")), q.Put(ctx, 0, []byte("x")))
			},
			map[string]string{"/q": "", "/q/queue-1000000AB0000000000": framed, "/q/queue-0FFFFFFFF0000000001": framed, "/q/queue-1000000000000000002": framed},
		},
		"delay": {
			func(ctx context.Context, c *recipes.Client) error {
				return queue.NewDelay(c, "/q").Put(ctx, due, []byte("x"))
			},
			map[string]string{"/q": "", "/q/queue-|18F0A1B2C3D|0000000000": framed},
		},
		"id": {
			func(ctx context.Context, c *recipes.Client) error {
				return queue.New(c, "/q").PutID(ctx, "a/b|c", []byte("x"))
			},
			map[string]string{"/q": "", "/q/queue-|a_b_c|0000000000": framed},
		},
		"kazoo": {
			func(ctx context.Context, c *recipes.Client) error {
				return queue.NewKazoo(c, "/q").Put(ctx, 100, []byte("x"))
			},
			map[string]string{"/q": "", "/q/entry-100-0000000000": "78"},
		},
		"kazoo locking": {
			func(ctx context.Context, c *recipes.Client) error {
				return queue.NewKazooLocking(c, "/q").Put(ctx, 7, []byte("x"))
			},
			map[string]string{"/q": "", "/q/entries": "", "/q/taken": "", "/q/entries/entry-007-0000000000": "78"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
				c := w.Client()
				if err := test.put(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				got := make(map[string]string)
				for path, data := range w.Tree("/q") {
					got[path] = hex.EncodeToString([]byte(data))
				}
				if !maps.Equal(got, test.want) {
					t.Errorf("got %q, want %q", got, test.want)
				}
			})
		})
	}
}

// TestLayout_Locks checks that Go puts the lock of an item where Curator and kazoo look for it, and
// looks there too.
func TestLayout_Locks(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		curator, kazoo := queue.New(c, "/c", queue.Locks("/c-locks")), queue.NewKazooLocking(c, "/k")
		for _, q := range []interface {
			TryTakeLocked(ctx context.Context) (*queue.Item, error)
			TryTake(ctx context.Context) (queue.Message, bool, error)
		}{curator, kazoo} {
			for range 2 {
				if q == curator {
					_ = curator.Put(t.Context(), []byte("x"))
				} else {
					_ = kazoo.Put(t.Context(), 100, []byte("x"))
				}
			}
			i, err := q.TryTakeLocked(t.Context())
			if err != nil || i == nil || string(i.Data) != "x" {
				t.Fatalf("%+v, %v", i, err)
			}
			lock := "/c-locks/queue-0000000000"
			if q == kazoo {
				lock = "/k/taken/entry-100-0000000000"
			}
			w.AssertOwner(lock, c.Session().ID())
			if z := w.Znode(lock); len(z.Data) != 32 { // as long as kazoo's, which reads it again
				t.Errorf("%q", z.Data)
			}
			// An item that somebody has locked is skipped.
			if m, ok, err := q.TryTake(t.Context()); !ok || err != nil || m.Name != map[bool]string{true: "queue-0000000001", false: "entry-100-0000000001"}[q == curator] {
				t.Errorf("%+v, %v, %v", m, ok, err)
			}
			if m, ok, err := q.TryTake(t.Context()); ok || err != nil {
				t.Errorf("%+v, %v", m, err)
			}
			if err := i.Done(t.Context()); err != nil {
				t.Error(err)
			}
		}
		w.AssertChildren("/c")
		w.AssertChildren("/c-locks")
		w.AssertChildren("/k/entries")
		w.AssertChildren("/k/taken")
	})
}

// TestOrder checks the order of items of each kind, including foreign ones, that existed before.
func TestOrder(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		const x = "\x00\x01\x00\x01\x01\x00\x00\x00\x01x\x02"
		w.Load(map[string]string{
			"/simple/qn-0000000007": "7", "/simple/qn-0000000010": "10", "/simple/foreign-0000000001": "", "/simple/qn-": "",
			"/priority/queue-1000000050000000003": x, "/priority/queue-0FFFFFFFF0000000009": x, "/priority/queue-1000000050000000002": x,
			"/priority/queue-17FFFFFFF0000000000": x, "/priority/queue-0800000000000000008": x,
			"/id/queue-|zz|0000000001": x, "/id/queue-|a|0000000002": x, "/id/queue-0000000003": x,
			"/kazoo/entry-999-0000000001": "a", "/kazoo/entry-000-0000000005": "b", "/kazoo/entry-100-0000000003": "c",
			"/multi/queue-0000000001": "\x00\x01\x00\x01\x01\x00\x00\x00\x01x\x01\x00\x00\x00\x00\x01\x00\x00\x00\x02yz\x02",
			"/multi/queue-0000000002": "\x00\x01\x00\x01\x01\x00\x00\x00\x05x\x02", "/multi/queue-0000000003": "\x00\x01\x00\x01\x02",
		})
		c := w.Client()
		drain := func(q interface {
			TryTake(ctx context.Context) (queue.Message, bool, error)
		}) (names []string) {
			for {
				m, ok, err := q.TryTake(t.Context())
				if errors.Is(err, recipes.ErrFormat) {
					names = append(names, fmt.Sprintf("%q", m.Data))
					continue
				}
				if err != nil {
					t.Error(err)
				}
				if !ok {
					return names
				}
				names = append(names, m.Name)
				for _, more := range m.More {
					names = append(names, string(more))
				}
			}
		}
		for _, test := range []struct {
			got, want []string
		}{
			{drain(queue.NewSimple(c, "/simple")), []string{"qn-0000000007", "qn-0000000010"}},
			{drain(queue.NewPriority(c, "/priority")), []string{"queue-0800000000000000008", "queue-0FFFFFFFF0000000009",
				"queue-1000000050000000002", "queue-1000000050000000003", "queue-17FFFFFFF0000000000"}},
			{drain(queue.New(c, "/id")), []string{"queue-|zz|0000000001", "queue-|a|0000000002", "queue-0000000003"}},
			{drain(queue.NewKazoo(c, "/kazoo")), []string{"entry-000-0000000005", "entry-100-0000000003", "entry-999-0000000001"}},
			{drain(queue.New(c, "/multi")), []string{"queue-0000000001", "", "yz", `"\x00\x01\x00\x01\x01\x00\x00\x00\x05x\x02"`, "queue-0000000003"}},
		} {
			if !slices.Equal(test.got, test.want) {
				t.Errorf("got %q, want %q", test.got, test.want)
			}
		}
		w.AssertChildren("/simple", "foreign-0000000001", "qn-")
	})
}
