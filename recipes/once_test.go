package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/zktest"
)

// trouble is one thing that happens to an ensemble.
type trouble struct {
	what   string
	at     time.Duration // after the last one
	member int
	lasts  time.Duration
}

// TestExactlyOnce is G3 and G5 for several clients of an ensemble that has trouble: every write that is reported as done was done once; what
// failed was not, and of what was given up nothing is left.
func TestExactlyOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		kind := rapid.SampledFrom(kinds).Draw(rt, "kind")
		members := rapid.SampledFrom([]int{1, 3}).Draw(rt, "members")
		all := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) trouble {
			return trouble{
				what:   rapid.SampledFrom([]string{"drop", "drop", "delay", "disconnect", "kill", "pause", "partition", "leader"}).Draw(rt, "what"),
				at:     time.Duration(rapid.IntRange(0, 800).Draw(rt, "at")) * time.Millisecond,
				member: rapid.IntRange(1, members).Draw(rt, "member"),
				lasts:  time.Duration(rapid.IntRange(1, 3000).Draw(rt, "for")) * time.Millisecond,
			}
		}), 0, 8).Draw(rt, "troubles")
		patience := time.Duration(rapid.IntRange(20, 10000).Draw(rt, "patience")) * time.Millisecond
		synctest.Test(t, func(t *testing.T) { exactlyOnce(t, kind, members, all, patience) })
		if t.Failed() {
			rt.Fatalf("failed")
		}
	})
}

func exactlyOnce(t *testing.T, kind string, members int, all []trouble, patience time.Duration) {
	const workers, rounds = 3, 6
	e := zktest.StartEnsemble(t, members)
	e.Load(map[string]string{"/q": "", "/seq": "", "/c0": "", "/c1": "", "/c2": ""})
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		kept = make(map[string]bool) // paths that must be there, and no others
	)
	for w := range workers {
		c := open(t, kind, e.Service, 20*time.Second, recipes.Retry(recipes.Forever(30*time.Millisecond)))
		wg.Go(func() {
			version := int32(0)
			for r := range rounds {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				path, err := c.Create(ctx, "/seq/n-", []byte(fmt.Sprint(w, r)), recipes.CreateOptions{Mode: recipes.PersistentSequential, Protected: true})
				if err == nil {
					mu.Lock()
					kept[path] = true
					mu.Unlock()
					if r%2 == 1 { // what was made can be taken away, once
						if err := c.Delete(t.Context(), path, 0); err != nil {
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
				stat, err := c.Set(t.Context(), fmt.Sprint("/c", w), []byte(fmt.Sprint("round ", r)), version)
				if err != nil || stat.Version != version+1 {
					t.Errorf("set: %+v, %v", stat, err)
					return
				}
				version = stat.Version
				for tries := 0; ; tries++ { // a multi is never done twice without being told
					_, err := c.Multi(t.Context(), &zk.CreateRequest{Path: fmt.Sprintf("/q/%d-%d", w, r), Acl: zk.WorldACL(zk.PermAll)})
					if tries > 0 && errors.Is(err, zk.ErrNodeExists) {
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
	for _, x := range all {
		time.Sleep(x.at)
		m := e.Member(x.member)
		switch x.what {
		case "drop":
			e.DropReply(zktest.Any)
		case "delay":
			e.Delay(zktest.Any, x.lasts)
		case "disconnect":
			m.Disconnect()
		case "kill":
			m.Kill()
			time.Sleep(x.lasts)
			m.Start()
		case "pause":
			m.Pause()
			time.Sleep(x.lasts)
			m.Resume()
		case "partition":
			m.Partition()
			time.Sleep(x.lasts)
			m.Heal()
		case "leader":
			if members > 1 {
				leader := e.Leader()
				leader.Kill()
				time.Sleep(x.lasts)
				leader.Start()
			}
		}
	}
	wg.Wait()
	time.Sleep(time.Minute) // for what goes on in the background
	e.ClearFaults()
	for path := range e.Tree("/seq") {
		if path != "/seq" && !kept[path] {
			t.Errorf("%s is left", path)
		}
		delete(kept, path)
	}
	for path := range kept {
		t.Errorf("%s is gone", path)
	}
	for path := range e.Tree("/") {
		if strings.HasPrefix(path, "/c") {
			e.AssertData(path, fmt.Sprint("round ", rounds-1))
		}
	}
}
