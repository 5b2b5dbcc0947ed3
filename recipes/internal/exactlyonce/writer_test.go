package exactlyonce_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/exactlyonce"
	"github.com/gozkd/gozkd/zktest"
)

func TestMain(m *testing.M) { recipetest.Main(m) }

// append1 returns an operation that creates one more child each time.
func append1(name string) client.Op {
	return client.CreateOp("/dir/"+name, nil, client.CreateOptions{Sequential: true})
}

// written returns the number of children that the writes have created, and the number of markers.
func written(w *recipetest.World, prefix string) (items, markers int) {
	for path := range w.Tree("/dir") {
		name := strings.TrimPrefix(path, "/dir/")
		switch {
		case strings.HasPrefix(name, "once-"):
			markers++
		case strings.HasPrefix(name, prefix):
			items++
		}
	}
	return items, markers
}

// TestDo_Faults is O1, O2 and O4 with each kind of fault at each request.
func TestDo_Faults(t *testing.T) {
	recipetest.Steps(t, 1, recipetest.Faults(), func(t testing.TB, s *recipetest.Step) {
		s.Load(map[string]string{"/dir": ""})
		w := exactlyonce.New(s.Client, "/dir")
		s.Arm()
		done, unknown := 0, 0
		for range 3 {
			zxid, err := w.Do(s.Ctx, append1("item-"))
			switch {
			case err == nil:
				done++
				if zxid <= 0 {
					t.Errorf("zxid %d", zxid)
				}
			case errors.Is(err, recipes.ErrOutcomeUnknown):
				unknown++
			case s.Ctx.Err() == nil:
				t.Error(err)
			}
		}
		if unknown > 0 && s.Fault != recipetest.EndBefore && s.Fault != recipetest.EndAfter && s.Fault != recipetest.Expire {
			t.Errorf("%d unknown", unknown)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
		s.Settle()
		items, markers := written(s.World, "item-")
		if items < done || items > done+unknown || markers != 0 {
			t.Errorf("%d done, %d unknown: %d items, %d markers", done, unknown, items, markers)
		}
	})
}

func TestDo_Refused(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		o := exactlyonce.New(c, "/dir")
		if _, err := o.Do(t.Context(), append1("a")); !errors.Is(err, proto.ErrNoNode) || errors.Is(err, recipes.ErrOutcomeUnknown) {
			t.Error(err)
		}
		w.Load(map[string]string{"/dir": ""})
		set := client.SetOp("/dir", []byte("x"), 0)
		if _, err := o.Do(t.Context(), set); err != nil {
			t.Error(err)
		}
		if _, err := o.Do(t.Context(), set); !errors.Is(err, proto.ErrBadVersion) {
			t.Error(err)
		}
		for path := range w.Tree("/dir") { // somebody deletes the markers
			if path != "/dir" {
				if err := c.Delete(t.Context(), path, -1); err != nil {
					t.Error(err)
				}
			}
		}
		set.Request.Version = 1
		if _, err := o.Do(t.Context(), set); err != nil {
			t.Error(err)
		}
		if err := o.Close(t.Context()); err != nil {
			t.Error(err)
		}
		w.AssertChildren("/dir")
	})
}

// TestDo is O1 to O4 for several writers with faults.
func TestDo(t *testing.T) {
	recipetest.Check(t, func(rt *rapid.T) (int, func(t testing.TB, w *recipetest.World)) {
		members := rapid.SampledFrom([]int{1, 1, 3}).Draw(rt, "members")
		troubles := recipetest.Troubles(members).Draw(rt, "troubles")
		return members, func(t testing.TB, w *recipetest.World) {
			w.Load(map[string]string{"/dir": ""})
			const writers, rounds = 3, 12
			results := make(chan string, writers)
			for i := range writers {
				c := w.Client()
				if i == 0 {
					c, _ = w.Hooked()
				}
				// Ends after its rounds; awaited below.
				go func() {
					o := exactlyonce.New(c, "/dir")
					done, unknown := 0, 0
					for range rounds {
						_, err := o.Do(t.Context(), append1(fmt.Sprint("w", i, "-")))
						switch {
						case err == nil:
							done++
						case errors.Is(err, recipes.ErrOutcomeUnknown):
							unknown++
						default:
							t.Error(err)
						}
						time.Sleep(200 * time.Millisecond)
					}
					if err := o.Close(t.Context()); err != nil {
						t.Error(err)
					}
					results <- fmt.Sprint(i, done, unknown)
				}()
			}
			w.Apply(troubles)
			for range writers {
				var n [3]int
				for i, field := range strings.Fields(<-results) {
					n[i], _ = strconv.Atoi(field)
				}
				if items, _ := written(w, fmt.Sprint("w", n[0], "-")); items < n[1] || items > n[1]+n[2] {
					t.Errorf("writer %d: %d done, %d unknown, %d items", n[0], n[1], n[2], items)
				}
			}
			time.Sleep(20 * time.Second)
			if _, markers := written(w, ""); markers != 0 {
				t.Errorf("%d markers", markers)
			}
		}
	})
}

// TestWrite checks what Write reports beyond Do: which op failed, and that a request is too large,
// which the server shows by closing the connection.
func TestWrite(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		w.Load(map[string]string{"/dir": ""})
		c := w.Client()
		o := exactlyonce.New(c, "/dir")
		r, err := o.Write(t.Context(), append1("a"))
		if err != nil || r.Session != c.Session() || len(r.Ops) != 1 || r.Ops[0].Path != "/dir/a0000000000" {
			t.Errorf("%+v, %v", r, err)
		}
		w.AssertOwner(r.Marker, r.Session.ID())
		r, err = o.Write(t.Context(), append1("a"), client.DeleteOp("/dir/none", -1))
		if !errors.Is(err, proto.ErrNoNode) || len(r.Ops) != 2 || r.Ops[0].Err != nil || !errors.Is(r.Ops[1].Err, proto.ErrNoNode) {
			t.Errorf("%+v, %v", r, err)
		}
		large := client.CreateOp("/dir/large", make([]byte, 1<<20+1000), client.CreateOptions{})
		if _, err = o.Write(t.Context(), large); err == nil || errors.Is(err, recipes.ErrOutcomeUnknown) {
			t.Error(err)
		}
		if err := o.Close(t.Context()); err != nil {
			t.Error(err)
		}
		w.AssertChildren("/dir", "a0000000000")
	})
}

// TestRegress_MarkerDeletedAfterLostAnswer deletes the marker between a lost answer and the look at
// the marker. The missing marker must not look like a missing znode of the caller, whose write was
// applied.
func TestRegress_MarkerDeletedAfterLostAnswer(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		w.Load(map[string]string{"/dir": ""})
		c, h := w.Hooked()
		other := w.Client()
		o := exactlyonce.New(c, "/dir")
		if _, err := o.Do(t.Context(), append1("item-")); err != nil {
			t.Fatal(err)
		}
		h.Arm(func(r recipetest.Request) error {
			switch {
			case r.Op == zktest.Multi && r.N == 1:
				w.DropReply(zktest.Multi)
			case r.Op == zktest.Get:
				for path := range w.Tree("/dir") {
					if strings.HasPrefix(path, "/dir/once-") {
						if err := other.Delete(t.Context(), path, -1); err != nil {
							t.Error(err)
						}
					}
				}
			}
			return nil
		}, nil)
		_, err := o.Do(t.Context(), append1("item-"))
		if !errors.Is(err, recipes.ErrOutcomeUnknown) || errors.Is(err, proto.ErrNoNode) {
			t.Error(err)
		}
		if items, _ := written(w, "item-"); items != 2 {
			t.Errorf("%d items", items)
		}
		closed(t, w, o)
	})
}
