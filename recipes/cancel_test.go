package recipes_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/zktest"
)

// hooked is a connection that tells of each request, before it is sent and after it was answered.
type hooked struct {
	*zk.Conn
	mu     sync.Mutex
	n      int
	before func(n int)
	after  func(n int)
}

func (h *hooked) hook(before, after func(n int)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.n, h.before, h.after = 0, before, after
}

// count counts one request, and returns what tells that it was answered.
func (h *hooked) count() func() {
	h.mu.Lock()
	h.n++
	n, before, after := h.n, h.before, h.after
	h.mu.Unlock()
	if before != nil {
		before(n)
	}
	return func() {
		if after != nil {
			after(n)
		}
	}
}

func (h *hooked) requests() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.n
}

func (h *hooked) Create(path string, data []byte, flags int32, acl []zk.ACL) (string, error) {
	defer h.count()()
	return h.Conn.Create(path, data, flags, acl)
}

func (h *hooked) CreateContainer(path string, data []byte, flag int32, acl []zk.ACL) (string, error) {
	defer h.count()()
	return h.Conn.CreateContainer(path, data, flag, acl)
}

func (h *hooked) CreateTTL(path string, data []byte, flag int32, acl []zk.ACL, ttl time.Duration) (string, error) {
	defer h.count()()
	return h.Conn.CreateTTL(path, data, flag, acl, ttl)
}

func (h *hooked) Delete(path string, version int32) error {
	defer h.count()()
	return h.Conn.Delete(path, version)
}

func (h *hooked) Set(path string, data []byte, version int32) (*zk.Stat, error) {
	defer h.count()()
	return h.Conn.Set(path, data, version)
}

func (h *hooked) Get(path string) ([]byte, *zk.Stat, error) {
	defer h.count()()
	return h.Conn.Get(path)
}

func (h *hooked) Exists(path string) (bool, *zk.Stat, error) {
	defer h.count()()
	return h.Conn.Exists(path)
}

func (h *hooked) Children(path string) ([]string, *zk.Stat, error) {
	defer h.count()()
	return h.Conn.Children(path)
}

func (h *hooked) Multi(ops ...any) ([]zk.MultiResponse, error) {
	defer h.count()()
	return h.Conn.Multi(ops...)
}

func (h *hooked) Sync(path string) (string, error) {
	if path != "/" { // not the Client's own
		defer h.count()()
	}
	return h.Conn.Sync(path)
}

// openHooked wraps a connection whose requests are told of.
func openHooked(t *testing.T, s *zktest.Service) (*recipes.Client, *hooked) {
	t.Helper()
	conn, events, err := zk.Connect(strings.Split(s.ConnectString(), ","), 20*time.Second, zk.WithDialer(s.Dialer()), zk.WithLogger(newLogger(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	h := &hooked{Conn: conn}
	c, err := recipes.Wrap(t.Context(), h, events, 20*time.Second, recipes.Logger(newLogger(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c, h
}

// TestCancel ends ctx at each request that an operation makes, before it is sent and when it was answered, with and without a lost answer
// before. Then the operation returns at once; and when the server is idle again, either it is done as reported, or nothing is
// left but containers and what was reported as unknown.
func TestCancel(t *testing.T) {
	for _, op := range operations() {
		for _, lose := range []bool{false, true} {
			for _, when := range []string{"before", "after"} {
				name := op.name + map[bool]string{true: ", answer lost"}[lose] + ", " + when
				t.Run(name, func(t *testing.T) {
					for k := 1; ; k++ {
						more := false
						synctest.Test(t, func(t *testing.T) { more = cancelAt(t, op, lose, when, k) })
						if !more {
							break
						}
					}
				})
			}
		}
	}
}

// cancelAt ends ctx at the k-th request. It reports whether there was one.
func cancelAt(t *testing.T, op operation, lose bool, when string, k int) bool {
	s := zktest.Start(t)
	s.Load(map[string]string{"/dir": "", "/dir/z": "old"})
	c, h := openHooked(t, s.Service)
	before := s.Tree("/")
	if lose {
		s.DropReply(op.fault)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	at := func(n int) {
		if n == k {
			cancel()
			synctest.Wait() // so that who waits for ctx goes first, if it may
		}
	}
	if when == "before" {
		h.hook(at, nil)
	} else {
		h.hook(nil, at)
	}
	begun := time.Now()
	err := op.do(ctx, c)
	if h.requests() < k {
		return false
	}
	if ctx.Err() != nil && time.Since(begun) > 2*time.Second {
		t.Errorf("request %d: it took %v", k, time.Since(begun))
	}
	time.Sleep(5 * time.Second) // for what goes on in the background
	s.ClearFaults()
	switch after := s.Tree("/"); {
	case err == nil:
		if op.name != "set any" {
			op.verify(t, s, 1)
		}
	case !errors.Is(err, context.Canceled) && !op.once:
		t.Errorf("request %d: %v", k, err)
	case strings.HasPrefix(op.name, "create protected"):
		if !maps.Equal(before, after) {
			t.Errorf("request %d: %v, and left %q", k, err, after)
		}
	case errors.Is(err, recipes.ErrOutcomeUnknown):
		if !maps.Equal(before, after) && op.name != "set any" { // which may have been done twice
			op.verify(t, s, 1)
		}
	case strings.HasPrefix(op.name, "create"), op.fault == zktest.Set, op.fault == zktest.Delete, op.fault == zktest.Multi:
		// The answer to the write came before ctx ended, and what failed is the read after it; or it was not sent.
		if !maps.Equal(before, after) {
			op.verify(t, s, 1)
		}
	}
	return true
}
