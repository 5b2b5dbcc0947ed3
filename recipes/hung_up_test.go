package recipes_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/group"
	"github.com/gozkd/gozkd/recipes/internal/exactlyonce"
	"github.com/gozkd/gozkd/recipes/lock"
	"github.com/gozkd/gozkd/recipes/queue"
	"github.com/gozkd/gozkd/zktest"
)

// breaker breaks connections at requests that match.
type breaker struct {
	match  func(op proto.OpCode, frame []byte) bool
	silent bool         // the server does not answer any longer; otherwise it hangs up
	left   atomic.Int64 // how many connections are still to be broken
	frames atomic.Int64 // matching frames, also later ones
}

// dial returns a dialer for s.
func (b *breaker) dial(s *zktest.Service) func(network, address string, timeout time.Duration) (net.Conn, error) {
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		conn, err := s.Dialer()(network, address, timeout)
		if err != nil {
			return nil, err
		}
		return &breaking{Conn: conn, breaker: b}, nil
	}
}

// breaking is a connection of a breaker.
type breaking struct {
	net.Conn
	*breaker
	broken atomic.Bool
	begun  []byte // less than the 12 bytes that a frame begins with
	skip   int    // what is still to come of a frame that was looked at
}

func (c *breaking) Write(b []byte) (int, error) {
	rest := b[min(c.skip, len(b)):]
	c.skip -= len(b) - len(rest)
	for rest = append(c.begun, rest...); len(rest) >= 12; {
		size := 4 + int(binary.BigEndian.Uint32(rest))
		frame := rest[:min(len(rest), size)]
		rest, c.skip = rest[len(frame):], size-len(frame)
		if !c.match(proto.OpCode(binary.BigEndian.Uint32(frame[8:])), frame) {
			continue
		}
		c.frames.Add(1)
		if c.broken.Load() || c.left.Add(-1) < 0 {
			continue
		}
		if c.broken.Store(true); !c.silent {
			_ = c.Conn.Close()
		}
	}
	if c.begun = rest; c.broken.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *breaking) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		switch {
		case !c.broken.Load():
			return n, err
		case !c.silent:
			return 0, io.EOF
		case err != nil:
			return 0, err
		}
	}
}

// The deadlines of a connection that this side has closed would tell so: only the server hangs up.

func (c *breaking) SetDeadline(t time.Time) error { return c.unlessBroken(c.Conn.SetDeadline(t)) }
func (c *breaking) SetReadDeadline(t time.Time) error {
	return c.unlessBroken(c.Conn.SetReadDeadline(t))
}
func (c *breaking) SetWriteDeadline(t time.Time) error {
	return c.unlessBroken(c.Conn.SetWriteDeadline(t))
}

func (c *breaking) unlessBroken(err error) error {
	if c.broken.Load() {
		return nil
	}
	return err
}

// requests returns a match for one operation.
func requests(op proto.OpCode) func(proto.OpCode, []byte) bool {
	return func(o proto.OpCode, _ []byte) bool { return o == op }
}

// TestHungUp_Deletions: a deletion that must be done goes on however often the server hangs up.
func TestHungUp_Deletions(t *testing.T) {
	bubbles(t, func(t *testing.T, kind recipetest.Kind) {
		s := zktest.Start(t)
		s.Load(map[string]string{"/dir": "", "/lock": "", "/locks": "", "/kept": ""})
		b := &breaker{match: func(op proto.OpCode, frame []byte) bool {
			return op == proto.OpDelete || op == proto.OpMulti || op == proto.OpSync && bytes.Contains(frame, []byte("once-"))
		}}
		// The session outlives 20 broken connections, between which a client may wait a second:
		// otherwise the locks could be lost, and their znodes deleted, before their turn.
		c := recipetest.OpenWith(t, kind, s.Service, 40*time.Second, b.dial(s.Service), recipes.Retry(recipes.Times(1, 0)))
		held, err := lock.NewMutex(c, "/lock", nil).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w := exactlyonce.New(c, "/dir")
		if _, err := w.Write(t.Context()); err != nil {
			t.Fatal(err)
		}
		kept := group.NewPersistentZnode(c, "/kept/a", nil, recipes.CreateOptions{Ephemeral: true})
		if err := kept.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := kept.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		q := queue.New(c, "/queue", queue.Locks("/locks"))
		defer func() { _ = q.Close() }()
		if err := q.Put(t.Context(), []byte("x")); err != nil {
			t.Fatal(err)
		}
		item, err := q.TakeLocked(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		deletions := map[string]func(context.Context) error{
			"/lock": held.Release, "/dir": w.Close, "/locks": item.Release, "/kept": func(context.Context) error { return kept.Close() },
		}
		for _, dir := range slices.Sorted(maps.Keys(deletions)) {
			b.left.Store(20)
			if err := deletions[dir](t.Context()); err != nil && !errors.Is(err, recipes.ErrOutcomeUnknown) {
				t.Errorf("%s: %v", dir, err)
			}
			time.Sleep(10 * time.Minute)
			s.AssertChildren(dir)
			if b.left.Load() >= 0 {
				t.Errorf("%s: %d connections more should have been broken", dir, b.left.Load())
			}
		}
	})
}

// TestHungUp_NotByTheClient: a connection that the Client itself gives up, because it is silent, is
// not the server's answer to a request.
func TestHungUp_NotByTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t)
		s.Load(map[string]string{"/a": ""})
		b := &breaker{match: requests(proto.OpSetData), silent: true}
		forever := recipes.Retry(recipes.Forever(50 * time.Millisecond))
		c := recipetest.OpenWith(t, recipetest.Connect, s.Service, 10*time.Second, b.dial(s.Service), forever)
		b.left.Store(8)
		if _, err := c.Idempotent().Set(t.Context(), "/a", make([]byte, 100_000), -1); err != nil {
			t.Error(err)
		}
		if b.left.Load() >= 0 {
			t.Errorf("%d connections more should have been broken", b.left.Load())
		}
	})
}

// TestHungUp_Reads: a read of Connect's Client that breaks connections is repeated alone.
func TestHungUp_Reads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t)
		s.Load(map[string]string{"/a": "", "/b": ""})
		b := &breaker{match: requests(proto.OpGetData)}
		forever := recipes.Retry(recipes.Forever(50 * time.Millisecond))
		c := recipetest.OpenWith(t, recipetest.Connect, s.Service, 10*time.Second, b.dial(s.Service), forever)
		b.left.Store(1000)
		exists := 0
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for ; ; exists++ {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := c.Exists(t.Context(), "/b"); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Millisecond)
			}
		})
		if _, _, err := c.Get(t.Context(), "/a"); !errors.Is(err, recipes.ErrHungUp) || errors.Is(err, recipes.ErrOutcomeUnknown) {
			t.Error(err)
		}
		close(stop)
		wg.Wait()
		if exists == 0 || b.frames.Load() != 10 {
			t.Errorf("%d other requests, %d reads", exists, b.frames.Load())
		}
	})
}
