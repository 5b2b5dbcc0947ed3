package cache_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/cache"
	"github.com/gozkd/gozkd/recipes/gozk"
)

// lagging gives the answers in lag until the first sync, like a server that lags.
type lagging struct {
	recipes.Conn[zk.Event]

	mu    sync.Mutex
	lags  bool
	data  []byte
	stat  *proto.Stat
	names []string
	above *proto.Stat
	syncs int
}

func (l *lagging) lag(older func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lags, l.syncs = true, 0
	older()
}

func (l *lagging) Get(path string, watch bool) ([]byte, *proto.Stat, <-chan zk.Event, error) {
	data, stat, fires, err := l.Conn.Get(path, watch)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !watch || path != "/a/x" || err != nil {
		return data, stat, fires, err
	}
	if !l.lags {
		l.data, l.stat = data, stat
	}
	return l.data, l.stat, fires, nil
}

func (l *lagging) Children(path string, watch bool) ([]string, *proto.Stat, <-chan zk.Event, error) {
	names, stat, fires, err := l.Conn.Children(path, watch)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !watch || path != "/a" || err != nil {
		return names, stat, fires, err
	}
	if !l.lags {
		l.names, l.above = names, stat
	}
	return l.names, l.above, fires, nil
}

func (l *lagging) Sync(path string) error {
	l.mu.Lock()
	if path == "/a" { // requests for / are the Client's own
		l.lags = false
		l.syncs++
	}
	l.mu.Unlock()
	return l.Conn.Sync(path)
}

// An answer that is older than the cache is not shown, and the server is told to sync.
func TestC2_Lagging(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		w.Load(map[string]string{"/a": "", "/a/x": "1"})
		conn, events, err := zk.Connect(strings.Split(w.ConnectString(), ","), recipetest.Timeout, zk.WithDialer(w.Dialer()), zk.WithLogger(recipetest.NewLogger(t)))
		must(t, err)
		t.Cleanup(conn.Close)
		l := &lagging{Conn: gozk.Conn(conn)}
		c, err := recipes.Wrap(t.Context(), l, events, recipetest.Timeout)
		must(t, err)
		t.Cleanup(func() { must(t, c.Close()) })
		other := w.Client()
		children := cache.NewChildren(c, "/a")
		defer children.Close()
		r := newReplay(0)
		children.Listen(t.Context(), r.apply)
		must(t, children.Start(t.Context()))
		must(t, children.Wait(t.Context()))
		expect := func(what string, want map[string]string) {
			t.Helper()
			time.Sleep(time.Second)
			if err := r.compare(want, children.All()); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.lags || l.syncs != 1 {
				t.Errorf("%s: it lags: %v; %d times sync", what, l.lags, l.syncs)
			}
		}
		must(t, set(other, "/a/x"))
		time.Sleep(time.Second)
		l.lag(func() {
			old := *l.stat
			old.Mzxid-- // an answer that is as new as the cache is not known to lag
			l.stat = &old
		})
		must(t, set(other, "/a/x"))
		expect("data", map[string]string{"/a/x": "set"})

		l.lag(func() {
			old := *l.above
			old.Pzxid--
			l.above, l.names = &old, nil
		})
		must(t, create(other, "/a/y"))
		expect("children", map[string]string{"/a/x": "set", "/a/y": ""})
	})
}
