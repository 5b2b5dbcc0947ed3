package group_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/cache"
	"github.com/gozkd/gozkd/recipes/group"
)

func TestMain(m *testing.M) { recipetest.Main(m) }

// join joins a group until the end of the test.
func join(t testing.TB, c *recipes.Client, id, payload string) *group.PersistentZnode {
	t.Helper()
	m, err := group.New(c, "/group").Join(t.Context(), id, []byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() }) // tests that need the error call Close themselves
	return m
}

// texts returns id=payload of each member.
func texts(members []group.Member) (all []string) {
	for _, m := range members {
		all = append(all, m.ID+"="+string(m.Payload))
	}
	return all
}

func TestGroup(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		g := group.New(c, "/group")
		if members, err := g.Members(t.Context()); err != nil || len(members) != 0 {
			t.Errorf("%v, %v", members, err)
		}
		z := join(t, c, "z", "1")
		begun := time.Now()
		time.Sleep(time.Second)
		a := join(t, w.Client(), "a", "2")
		w.AssertData("/group/z", "1")
		w.AssertOwner("/group/z", c.Session().ID())
		if err := z.SetData(t.Context(), []byte("3")); err != nil {
			t.Fatal(err)
		}
		members, err := g.Members(t.Context())
		if err != nil || !slices.Equal(texts(members), []string{"z=3", "a=2"}) {
			t.Fatalf("%q, %v", texts(members), err)
		}
		if m := members[0]; m.Session != c.Session().ID() || m.Path != "/group/z" || !m.Since.Equal(begun.Truncate(time.Millisecond)) || m.Zxid >= members[1].Zxid {
			t.Errorf("%+v", m)
		}
		if path, err := a.Path(); err != nil || path != "/group/a" {
			t.Errorf("%q, %v", path, err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		w.AssertChildren("/group", "z")
		if _, err := a.Wait(t.Context()); !errors.Is(err, recipes.ErrClosed) {
			t.Errorf("%v", err)
		}
		for _, id := range []string{"", ".", "..", "a/b"} {
			if _, err := g.Join(t.Context(), id, nil); !errors.Is(err, proto.ErrBadArguments) {
				t.Errorf("%q: %v", id, err)
			}
		}
	})
}

// If Join fails, the process is not a member.
func TestP3_JoinFails(t *testing.T) {
	recipetest.Steps(t, 1, recipetest.Faults(), func(t testing.TB, s *recipetest.Step) {
		s.Load(map[string]string{"/group": ""})
		g := group.New(s.Client, "/group")
		s.Arm()
		m, err := g.Join(s.Ctx, "a", nil)
		if err == nil {
			err = m.Close()
		}
		if err == nil {
			s.AssertChildren("/group")
		} else if s.Ctx.Err() == nil {
			t.Error(err)
		}
		s.Settle()
		s.AssertChildren("/group")
	})
}

// An id that is in use, by a process that has died and by one that lives.
func TestP4(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		first := w.Client()
		old := join(t, first, "a", "old")
		w.Unplug(first) // like a process that died
		second := w.Client()
		begun := time.Now()
		m := join(t, second, "a", "new")
		if time.Since(begun) > time.Second {
			t.Error("it has waited for the session of the first")
		}
		w.AssertData("/group/a", "new")
		w.Plug(first) // it is alive
		time.Sleep(time.Minute)
		w.AssertData("/group/a", "new")
		if _, err := old.Path(); !errors.Is(err, recipes.ErrTaken) {
			t.Errorf("%v", err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if _, err := old.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		w.AssertData("/group/a", "old")
	})
}

func TestWith(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		g, p := group.New(c, "/group"), group.NewParty(c, "/party")
		ours := errors.New("ours")
		err := g.With(t.Context(), "a", []byte("x"), func(ctx context.Context) error {
			w.AssertData("/group/a", "x")
			return ours
		})
		if !errors.Is(err, ours) {
			t.Error(err)
		}
		err = p.With(t.Context(), "a", nil, func(ctx context.Context) error {
			if members, err := p.Members(ctx); err != nil || !slices.Equal(texts(members), []string{"a=a"}) {
				t.Errorf("%+v, %v", members, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			_ = g.With(t.Context(), "a", nil, func(context.Context) error { panic("x") })
		}()
		w.AssertChildren("/group")
		w.AssertChildren("/party")
	})
}

// The znodes are those of kazoo's recipe/party.py.
func TestParty_Kazoo(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		const guid = "0123456789abcdef0123456789abcdef"
		w.Load(map[string]string{
			"/party/" + guid + "__party__": "python", "/party/other": "no member",
			"/shallow/" + guid + "-py-thon": "py-thon", "/shallow/java": "of Curator",
		})
		c := w.Client()
		party, shallow := group.NewParty(c, "/party"), group.NewShallowParty(c, "/shallow")
		for range 2 { // a process may join more than once
			m, err := party.Join(t.Context(), "go", nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = m.Close() }) // before the Client is closed
			other, err := shallow.Join(t.Context(), "go", nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = other.Close() })
		}
		for path, data := range w.Tree("/") {
			var g, rest string
			switch {
			case data != "go":
				continue
			case len(path) > len("/party/")+32 && path[:len("/party/")] == "/party/":
				g, rest = path[len("/party/"):][:32], path[len("/party/"):][32:]
			case len(path) > len("/shallow/")+32:
				g, rest = path[len("/shallow/"):][:32], path[len("/shallow/"):][32:]
			}
			if rest != "__party__" && rest != "-go" || g == guid {
				t.Errorf("%s", path)
			}
		}
		if _, err := party.Join(t.Context(), "a", []byte("x")); !errors.Is(err, recipes.ErrArgument) {
			t.Error(err)
		}
		found, err := party.Members(t.Context())
		members := texts(found)
		slices.Sort(members)
		if err != nil || !slices.Equal(members, []string{"go=go", "go=go", "python=python"}) {
			t.Errorf("%q, %v", members, err)
		}
		v := party.View()
		defer v.Close()
		check(t, v.Start(t.Context()))
		if err := v.Wait(t.Context()); err != nil || len(v.Members()) != 3 {
			t.Errorf("%q, %v", texts(v.Members()), err)
		}
		found, err = shallow.Members(t.Context())
		members = texts(found)
		slices.Sort(members)
		if err != nil || !slices.Equal(members, []string{"go=", "go=", "java=", "py-thon="}) {
			t.Errorf("%q, %v", members, err)
		}
		if _, err := shallow.Join(t.Context(), "a/b", nil); !errors.Is(err, proto.ErrBadArguments) {
			t.Error(err)
		}
	})
}

func TestView(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		v := group.New(w.Client(), "/group").View()
		defer v.Close()
		check(t, v.Start(t.Context()))
		if err := v.Wait(t.Context()); err != nil || !v.Complete() {
			t.Fatal(err)
		}
		events := make(chan string, 100)
		v.Listen(t.Context(), func(e cache.Event) {
			if z := cmp.Or(e.New, e.Old); z != nil {
				events <- fmt.Sprint(e.Type, " ", path.Base(z.Path), "=", string(z.Data))
			}
		})
		expect := func(want ...string) {
			t.Helper()
			for _, want := range want {
				select {
				case e := <-events:
					if e != want {
						t.Errorf("%q, want %q", e, want)
					}
				case <-time.After(time.Minute):
					t.Errorf("nothing, want %q", want)
				}
			}
		}
		join(t, w.Client(), "b", "1")
		expect("added b=1")
		other := w.Client()
		m := join(t, other, "a", "1")
		expect("added a=1")
		if err := m.SetData(t.Context(), []byte("2")); err != nil {
			t.Fatal(err)
		}
		expect("changed a=2")
		if got := texts(v.Members()); !slices.Equal(got, []string{"b=1", "a=2"}) {
			t.Errorf("%q", got)
		}
		w.ExpireSession(other.Session().ID())
		expect("removed a=2", "added a=2")
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		expect("removed a=2")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for e := range v.Events(ctx) {
			if e.Type == cache.Added && path.Base(e.New.Path) != "b" {
				t.Errorf("%+v", e)
			}
		}
	})
}

// After the failures all clients see the same members: those that did not leave, with their last
// payloads.
func TestP5_Converges(t *testing.T) {
	recipetest.Check(t, func(rt *rapid.T) (int, func(t testing.TB, w *recipetest.World)) {
		members := rapid.SampledFrom([]int{1, 1, 1, 3}).Draw(rt, "members") // an ensemble takes ten times as long
		leavers := rapid.IntRange(0, 2).Draw(rt, "leavers")
		troubles := recipetest.Troubles(members).Draw(rt, "troubles")
		return members, func(t testing.TB, w *recipetest.World) {
			const n = 3
			var views []*group.View
			var clients []*recipes.Client
			for range n {
				c := w.Client()
				v := group.New(c, "/group").View()
				check(t, v.Start(t.Context()))
				defer v.Close()
				views, clients = append(views, v), append(clients, c)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				for i, c := range clients {
					m, err := group.New(c, "/group").Join(t.Context(), fmt.Sprint(i), []byte("joined"))
					if err != nil {
						t.Errorf("join: %v", err)
						continue
					}
					if i < leavers {
						if err = m.Close(); errors.Is(err, context.DeadlineExceeded) {
							err = nil // goes on without Close
						}
					} else {
						err = m.SetData(t.Context(), []byte("stays"))
					}
					if err != nil {
						t.Errorf("leave or set: %v", err)
					}
				}
			}()
			w.Apply(troubles)
			<-done
			time.Sleep(4 * recipetest.Timeout)
			var want []string
			for i := leavers; i < n; i++ {
				want = append(want, fmt.Sprint(i, "=stays"))
			}
			for i := range n {
				asked, err := group.New(clients[i], "/group").Members(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, got := range [][]string{texts(asked), texts(views[i].Members())} {
					if slices.Sort(got); !slices.Equal(got, want) {
						t.Errorf("client %d sees %q, want %q", i, got, want)
					}
				}
			}
		}
	})
}
