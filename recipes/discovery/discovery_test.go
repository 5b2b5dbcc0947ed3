package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/sequence"
	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/cache"
	"github.com/gozkd/gozkd/recipes/discovery"
)

func TestMain(m *testing.M) { recipetest.Main(m) }

type instance = discovery.Instance[string]

func newDiscovery(c *recipes.Client) *discovery.Discovery[string] {
	return discovery.New[string](c, "/services")
}

// register registers an instance until the end of the test.
func register(t testing.TB, c *recipes.Client, in instance) *discovery.Registration[string] {
	t.Helper()
	r, err := newDiscovery(c).Register(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() }) // tests that need the error call Close themselves
	return r
}

// texts returns id=payload of each instance.
func texts(all []instance) (texts []string) {
	for _, in := range all {
		texts = append(texts, in.ID+"="+in.Payload)
	}
	return texts
}

func TestRegister(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		d := newDiscovery(c)
		if names, err := d.Names(t.Context()); err != nil || len(names) != 0 {
			t.Errorf("%q, %v", names, err)
		}
		if all, err := d.Instances(t.Context(), "web"); err != nil || len(all) != 0 {
			t.Errorf("%v, %v", all, err)
		}
		begun := time.Now()
		r := register(t, c, instance{Name: "web", ID: "b", Address: "10.0.0.7", Port: 80, Payload: "1"})
		register(t, w.Client(), instance{Name: "web", ID: "a", Payload: "2"})
		register(t, c, instance{Name: "db", Type: discovery.Static})
		w.AssertOwner("/services/web/b", c.Session().ID())
		w.AssertData("/services/web/b", fmt.Sprintf(`{"name":"web","id":"b","address":"10.0.0.7","port":80,"sslPort":null,"payload":"1",`+
			`"registrationTimeUTC":%d,"serviceType":"DYNAMIC","uriSpec":null}`, begun.UnixMilli()))
		if names, err := d.Names(t.Context()); err != nil || !slices.Equal(names, []string{"db", "web"}) {
			t.Errorf("%q, %v", names, err)
		}
		if all, err := d.Instances(t.Context(), "web"); err != nil || !slices.Equal(texts(all), []string{"a=2", "b=1"}) {
			t.Errorf("%v, %v", all, err)
		}
		db, err := d.Instances(t.Context(), "db")
		if err != nil || len(db) != 1 || len(db[0].ID) != 36 {
			t.Fatalf("%+v, %v", db, err)
		}
		w.AssertOwner("/services/db/"+db[0].ID, 0)

		in := r.Instance()
		in.Payload, in.Name = "3", "not changed"
		if err := r.Update(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		if found, err := d.Instance(t.Context(), "web", "b"); err != nil || found.Payload != "3" || found.Name != "web" || !found.Registered.Equal(in.Registered) {
			t.Errorf("%+v, %v", found, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		w.AssertChildren("/services/web", "a")
		if _, err := d.Instance(t.Context(), "web", "b"); !errors.Is(err, discovery.ErrNoInstance) {
			t.Error(err)
		}
		if err := r.Update(t.Context(), in); !errors.Is(err, recipes.ErrClosed) {
			t.Error(err)
		}
		for _, bad := range []instance{{}, {Name: "a/b"}, {Name: "a", ID: "b/c"}, {Name: ".."}} {
			if _, err := d.Register(t.Context(), bad); !errors.Is(err, proto.ErrBadArguments) {
				t.Errorf("%+v: %v", bad, err)
			}
		}
		if _, err := d.Register(t.Context(), instance{Name: "a", URI: "{"}); !errors.Is(err, recipes.ErrArgument) {
			t.Error(err)
		}
	})
}

// Znodes that are not instances do not hide the others.
func TestMalformed(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		w.Load(map[string]string{"/services/web/x": "no JSON", "/services/web/y": "null", "/services/web/z": `{"address":"10.0.0.7"}`})
		c := w.Client()
		register(t, c, instance{Name: "web", ID: "a"})
		d := newDiscovery(c)
		all, err := d.Instances(t.Context(), "web")
		if !errors.Is(err, recipes.ErrFormat) || !strings.Contains(err.Error(), "/services/web/x") || len(all) != 1 {
			t.Errorf("%v, %v", all, err)
		}
		for _, id := range []string{"x", "y", "z"} {
			if _, err := d.Instance(t.Context(), "web", id); !errors.Is(err, recipes.ErrFormat) {
				t.Errorf("%s: %v", id, err)
			}
		}
		cache := d.Cache("web")
		defer cache.Close()
		check(t, cache.Start(t.Context()))
		if err := cache.Wait(t.Context()); err != nil || len(cache.Instances()) != 1 {
			t.Errorf("%v, %v", cache.Instances(), err)
		}
	})
}

func TestTypes(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		for _, kind := range []discovery.ServiceType{discovery.Dynamic, discovery.DynamicSequential, discovery.Static, discovery.Permanent} {
			c := w.Client()
			r := register(t, c, instance{Name: "web", ID: "a", Type: kind})
			path, err := r.Path()
			if err != nil {
				t.Fatal(err)
			}
			_, _, sequential := sequence.Parse(path)
			ephemeral := int64(w.Znode(path).Stat.EphemeralOwner) == c.Session().ID()
			if sequential != (kind == discovery.DynamicSequential) || ephemeral != strings.HasPrefix(string(kind), "DYNAMIC") {
				t.Errorf("%s: %s", kind, path)
			}
			w.ExpireSession(c.Session().ID())
			time.Sleep(time.Minute)
			if again, err := r.Path(); err != nil || again != path {
				t.Errorf("%s: %s and then %s, %v", kind, path, again, err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			w.AssertMissing(path)
		}
	})
}

// A process that restarts is found at once, and the process that it replaces does not fight it.
func TestD3(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		first := w.Client()
		old := register(t, first, instance{Name: "web", ID: "a", Payload: "old"})
		cache := newDiscovery(w.Client()).Cache("web")
		defer cache.Close()
		check(t, cache.Start(t.Context()))
		if err := cache.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.Unplug(first)
		r := register(t, w.Client(), instance{Name: "web", ID: "a", Payload: "new"})
		time.Sleep(time.Second)
		if got := texts(cache.Instances()); !slices.Equal(got, []string{"a=new"}) {
			t.Errorf("%q", got)
		}
		w.Plug(first)
		time.Sleep(time.Minute)
		if got := texts(cache.Instances()); !slices.Equal(got, []string{"a=new"}) {
			t.Errorf("%q", got)
		}
		if _, err := old.Path(); !errors.Is(err, recipes.ErrTaken) {
			t.Error(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if _, err := old.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if got := texts(cache.Instances()); !slices.Equal(got, []string{"a=old"}) {
			t.Errorf("%q", got)
		}
	})
}

// TestD1_Steps checks D1 and D2 with each fault at each request.
func TestD1_Steps(t *testing.T) {
	for _, kind := range []discovery.ServiceType{discovery.Dynamic, discovery.DynamicSequential, discovery.Static} {
		t.Run(string(kind), func(t *testing.T) {
			recipetest.Steps(t, 1, recipetest.Faults(), func(t testing.TB, s *recipetest.Step) {
				s.Load(map[string]string{"/services/web": ""})
				d, other := newDiscovery(s.Client), newDiscovery(s.World.Client())
				s.Arm()
				r, err := d.Register(s.Ctx, instance{Name: "web", ID: "a", Payload: "1", Type: kind})
				if err == nil {
					in := r.Instance()
					in.Payload = "2"
					err = r.Update(s.Ctx, in)
					if err != nil && s.Ctx.Err() == nil {
						t.Error(err)
					}
					time.Sleep(2 * recipetest.Timeout)
					if all, err := other.Instances(t.Context(), "web"); err != nil || !slices.Equal(texts(all), []string{"a=2"}) {
						t.Errorf("%v, %v", all, err)
					}
					err = r.Close()
				}
				switch {
				case err == nil:
					s.AssertChildren("/services/web")
				case s.Ctx.Err() == nil:
					t.Error(err)
				}
				s.Settle()
				s.AssertChildren("/services/web")
			})
		})
	}
}

// After the failures a Cache and Instances show the registered instances as last updated.
func TestD5_Converges(t *testing.T) {
	recipetest.Check(t, func(rt *rapid.T) (int, func(t testing.TB, w *recipetest.World)) {
		members := rapid.SampledFrom([]int{1, 1, 1, 3}).Draw(rt, "members") // an ensemble takes ten times as long
		gone := rapid.IntRange(0, 2).Draw(rt, "unregistered")
		troubles := recipetest.Troubles(members).Draw(rt, "troubles")
		return members, func(t testing.TB, w *recipetest.World) {
			d := newDiscovery(w.Client())
			c := d.Cache("web")
			check(t, c.Start(t.Context()))
			defer c.Close()
			services := newDiscovery(w.Client())
			done := make(chan struct{})
			var want []string
			go func() {
				defer close(done)
				for i := range 3 {
					r, err := services.Register(t.Context(), instance{Name: "web", ID: fmt.Sprint(i), Payload: "1"})
					if err != nil {
						t.Errorf("register: %v", err)
						continue
					}
					if i < gone {
						if err := r.Close(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("unregister: %v", err)
						}
						continue
					}
					if err := r.Update(t.Context(), instance{Payload: "2"}); err != nil {
						t.Errorf("update: %v", err)
					}
					want = append(want, fmt.Sprint(i, "=2"))
				}
			}()
			w.Apply(troubles)
			<-done
			time.Sleep(4 * recipetest.Timeout)
			asked, err := d.Instances(t.Context(), "web")
			if err != nil {
				t.Fatal(err)
			}
			for _, got := range [][]instance{asked, c.Instances()} {
				if got := texts(got); !slices.Equal(got, want) {
					t.Errorf("%q, want %q", got, want)
				}
			}
		}
	})
}

func TestCache(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := newDiscovery(w.Client()).Cache("web")
		defer c.Close()
		check(t, c.Start(t.Context()))
		if err := c.Wait(t.Context()); err != nil || !c.Complete() {
			t.Fatal(err)
		}
		events := make(chan cache.EventType, 10)
		c.Listen(t.Context(), func(e cache.Event) { events <- e.Type })
		if e := <-events; e != cache.Complete {
			t.Error(e)
		}
		r := register(t, w.Client(), instance{Name: "web", ID: "a", Payload: "1"})
		if e := <-events; e != cache.Added {
			t.Error(e)
		}
		for range 2 { // parsed, and then from the cache
			if got := texts(c.Instances()); !slices.Equal(got, []string{"a=1"}) {
				t.Errorf("%q", got)
			}
		}
		if err := r.Update(t.Context(), instance{Payload: "2"}); err != nil {
			t.Fatal(err)
		}
		if e := <-events; e != cache.Changed {
			t.Error(e)
		}
		if got := texts(c.Instances()); !slices.Equal(got, []string{"a=2"}) {
			t.Errorf("%q", got)
		}
	})
}
