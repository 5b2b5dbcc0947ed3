package mirror

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/subtree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// A TTL znode that is kept alive by writes of the same data, or by an ephemeral child, is written
// in the target as well, once for each write. A mirror that is started again writes it, because
// nobody knows when it was written before.
func TestMirror_RenewsTTL(t *testing.T) {
	from, to := start(t), start(t)
	from.create(t, client.CreateOptions{}, "/a", "/a/plain")
	from.create(t, client.CreateOptions{TTL: time.Hour}, "/a/alive", "/a/idle", "/a/parent")
	from.create(t, client.CreateOptions{Ephemeral: true}, "/a/parent/session")
	f := between(from, to, "/a")
	defer f.disconnect()
	if err := f.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	pass := func(todo todo, alive, parent int32) {
		t.Helper()
		if _, err := f.pass(t.Context(), todo); err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]int32{"/a/plain": 0, "/a/idle": 0, "/a/alive": alive, "/a/parent": parent} {
			if _, stat, err := to.zk.Get(t.Context(), path, false); err != nil || stat.Version != want {
				t.Errorf("%s was written %d times, want %d: %v", path, stat.Version, want, err)
			}
		}
	}
	touch := func() {
		t.Helper()
		for _, path := range []string{"/a/alive", "/a/plain"} {
			if _, err := from.zk.Set(t.Context(), path, []byte(path), -1); err != nil {
				t.Fatal(err)
			}
		}
	}
	changed := todo{rels: map[string]struct{}{"/alive": {}, "/plain": {}}}
	pass(todo{whole: true}, 0, 0)
	pass(todo{whole: true}, 0, 1)
	touch()
	pass(changed, 1, 1) // as after an event
	pass(changed, 1, 1)
	touch()
	pass(todo{whole: true}, 2, 2)
	f.renewed = nil // the mirror is started again
	pass(todo{rels: map[string]struct{}{"/idle": {}}}, 2, 2)
	f.renewed = map[string]proto.Zxid{}
	touch()
	pass(changed, 3, 2)
}

// A znode that is too large for the target is named, with its size and the remedy.
func TestMirror_TooLarge(t *testing.T) {
	from, to := start(t), start(t, func(c *server.Config) { c.MaxBuffer = 10_000 })
	from.create(t, client.CreateOptions{}, "/a", "/a/b", "/a/c")
	if _, err := from.zk.Set(t.Context(), "/a/b", make([]byte, 20_000), -1); err != nil {
		t.Fatal(err)
	}
	err := once(t, between(from, to, "/a"))
	for _, want := range []string{"not equal after 10 comparisons", "/a/b with 20000 bytes", "jute.maxbuffer"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A znode of each kind is created again as each other kind, with the same data: the kind of the
// target follows, also if the mirror did not run meanwhile.
func TestMirror_OtherKinds(t *testing.T) {
	kinds := []client.CreateOptions{{}, {Container: true}, {TTL: time.Hour}, {TTL: 2 * time.Hour}, {Ephemeral: true}}
	path := func(i, j int) string { return fmt.Sprintf("/a/%d-%d", i, j) }
	for _, whole := range []bool{false, true} {
		from, to := start(t), start(t)
		from.create(t, client.CreateOptions{}, "/a")
		each := func(do func(i, j int)) {
			for i := range kinds {
				for j := range kinds {
					do(i, j)
				}
			}
		}
		f := between(from, to, "/a")
		pass := func(todo todo) (d subtree.Mirrored) {
			t.Helper()
			if err := f.connect(t.Context()); err != nil {
				t.Fatal(err)
			}
			d, err := f.pass(t.Context(), todo)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := to.kinds(), from.kinds(); !maps.Equal(got, want) {
				t.Errorf("whole %v: the target has the kinds %v, the source %v", whole, got, want)
			}
			awaitEqual(t, from, to, "/a")
			return d
		}
		each(func(i, j int) { from.create(t, kinds[i], path(i, j)) })
		pass(todo{whole: true})
		changed := todo{whole: whole, created: true, rels: map[string]struct{}{}}
		each(func(i, j int) {
			if err := from.zk.Delete(t.Context(), path(i, j), -1); err != nil {
				t.Fatal(err)
			}
			from.create(t, kinds[j], path(i, j))
			changed.rels[strings.TrimPrefix(path(i, j), "/a")] = struct{}{}
		})
		f.disconnect()
		f = between(from, to, "/a") // the mirror is started again
		pass(changed)
		if d := pass(todo{rels: changed.rels}); d.Created > 0 { // as after their data changed
			t.Errorf("%d znodes were created again, although their kinds are equal", d.Created)
		}
		f.disconnect()
	}
}

// kinds returns the containers and TTL znodes of a server.
func (m *member) kinds() map[string]time.Duration {
	kinds := map[string]time.Duration{}
	for _, k := range m.s.Facts().ZnodeKinds() {
		kinds[k.Path] = k.TTL
	}
	return kinds
}

// A znode with children keeps its kind until its children are gone.
func TestMirror_OtherKindWithChildren(t *testing.T) {
	from, to := start(t), start(t)
	from.create(t, client.CreateOptions{}, "/a", "/a/b", "/a/b/c")
	to.create(t, client.CreateOptions{}, "/a")
	to.create(t, client.CreateOptions{TTL: time.Hour}, "/a/b")
	to.create(t, client.CreateOptions{}, "/a/b/c")
	f := between(from, to, "/a")
	defer f.disconnect()
	if err := f.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	pass := func(created, kinds int) {
		t.Helper()
		d, err := f.pass(t.Context(), todo{whole: true})
		if got := to.kinds(); err != nil || d.Created != int64(created) || len(got) != kinds {
			t.Errorf("%+v, %v, the target has the kinds %v", d, err, got)
		}
	}
	pass(0, 1)
	if err := from.zk.Delete(t.Context(), "/a/b/c", -1); err != nil {
		t.Fatal(err)
	}
	pass(0, 1) // the child had to be deleted first
	pass(1, 0)
	pass(0, 0)
}

// The first comparison of a whole ensemble asks the target for the kinds before any other request.
func TestMirror_OtherKindAtOnce(t *testing.T) {
	from, to := start(t), start(t)
	from.create(t, client.CreateOptions{}, "/b")
	to.create(t, client.CreateOptions{TTL: time.Hour}, "/b")
	f := between(from, to, "/")
	f.overwrite = true
	if err := once(t, f); err != nil || len(to.kinds()) > 0 {
		t.Errorf("%v, the target has the kinds %v", err, to.kinds())
	}
}

// Znodes that only the target loses are created again at once: a container whose children are
// ephemeral in the source, which the target's server deletes, and a znode that a client deletes.
func TestMirror_TargetDeletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := start(t), start(t)
		from.create(t, client.CreateOptions{}, "/a", "/a/b")
		from.create(t, client.CreateOptions{Container: true}, "/a/c")
		from.create(t, client.CreateOptions{}, "/a/c/x")
		from.create(t, client.CreateOptions{Ephemeral: true}, "/a/c/e")
		f := between(from, to, "/a")
		defer follow(t, f)()
		time.Sleep(time.Minute)
		if err := from.zk.Delete(t.Context(), "/a/c/x", -1); err != nil {
			t.Fatal(err)
		}
		for range 20 { // the server of the target looks once a minute
			time.Sleep(time.Minute / 2)
			if err := to.zk.Delete(t.Context(), "/a/b", -1); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(time.Second)
		for _, path := range []string{"/a/b", "/a/c"} {
			if stat, there, err := to.zk.Exists(t.Context(), path, false); err != nil || !there || stat.Cversion != 0 {
				t.Errorf("the target has %s: %v, cversion %d, %v", path, there, stat.Cversion, err)
			}
		}
	})
}
