package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
)

// TestExactlyOnce is G3 and G5 for several clients of an ensemble with faults: every write that is
// reported as done was applied once, every failed one was not, and nothing is left of abandoned
// ones.
func TestExactlyOnce(t *testing.T) {
	recipetest.Check(t, func(rt *rapid.T) (int, func(t testing.TB, w *recipetest.World)) {
		kind := rapid.SampledFrom(recipetest.Kinds()).Draw(rt, "kind")
		members := rapid.SampledFrom([]int{1, 3}).Draw(rt, "members")
		troubles := recipetest.Troubles(members).Draw(rt, "troubles")
		patience := time.Duration(rapid.IntRange(20, 10000).Draw(rt, "patience")) * time.Millisecond
		return members, func(t testing.TB, w *recipetest.World) { exactlyOnce(t, w, kind, troubles, patience) }
	})
}

func exactlyOnce(t testing.TB, e *recipetest.World, kind recipetest.Kind, troubles []recipetest.Trouble, patience time.Duration) {
	const workers, rounds = 3, 6
	e.Load(map[string]string{"/q": "", "/seq": "", "/c0": "", "/c1": "", "/c2": ""})
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		kept = make(map[string]bool) // the paths that must exist, and no others
	)
	for w := range workers {
		c := e.Open(kind)
		wg.Go(func() {
			version := int32(0)
			for r := range rounds {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				path, err := c.Create(ctx, "/seq/n-", []byte(fmt.Sprint(w, r)), recipes.CreateOptions{Sequential: true, Protected: true})
				if err == nil {
					mu.Lock()
					kept[path] = true
					mu.Unlock()
					if r%2 == 1 { // a created znode can be deleted once
						if err := c.Idempotent().Delete(t.Context(), path, 0); err != nil {
							t.Errorf("delete: %v", err)
						}
						mu.Lock()
						delete(kept, path)
						mu.Unlock()
					}
				} else if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("create: %v", err)
				}
				cancel()
				stat, err := c.Idempotent().Set(t.Context(), fmt.Sprint("/c", w), []byte(fmt.Sprint("round ", r)), version)
				if err != nil || stat.Version != version+1 {
					t.Errorf("set: %+v, %v", stat, err)
					return
				}
				version = stat.Version
				// a multi is never repeated without the caller's knowledge
				for tries := 0; ; tries++ {
					_, err := c.Multi(t.Context(), client.CreateOp(fmt.Sprintf("/q/%d-%d", w, r), nil, client.CreateOptions{ACL: proto.OpenACL()}))
					if tries > 0 && errors.Is(err, proto.ErrNodeExists) {
						err = nil
					}
					if err == nil {
						break
					}
					if !errors.Is(err, recipes.ErrOutcomeUnknown) {
						t.Errorf("multi: %v", err)
						return
					}
				}
			}
		})
	}
	e.Apply(troubles)
	wg.Wait()
	time.Sleep(time.Minute) // until background work is done
	for path := range e.Tree("/seq") {
		if path != "/seq" && !kept[path] {
			t.Errorf("%s still exists", path)
		}
		delete(kept, path)
	}
	for path := range kept {
		t.Errorf("%s is missing", path)
	}
	for path := range e.Tree("/") {
		if strings.HasPrefix(path, "/c") {
			e.AssertData(path, fmt.Sprint("round ", rounds-1))
		}
	}
}
