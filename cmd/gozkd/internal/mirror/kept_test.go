package mirror

import (
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/client"
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
