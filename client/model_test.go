package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// frail is a connection that breaks after a number of bytes, in the middle of a request or a reply.
type frail struct {
	net.Conn
	mu   sync.Mutex
	left int // bytes in both directions
}

func (f *frail) spend(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n = min(n, f.left)
	f.left -= n
	return n
}

func (f *frail) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	if kept := f.spend(n); kept < n {
		return kept, errors.Join(errDown, f.Close())
	}
	return n, err
}

func (f *frail) Write(p []byte) (int, error) {
	kept := f.spend(len(p))
	n, err := f.Conn.Write(p[:kept])
	if err == nil && kept < len(p) {
		err = errors.Join(errDown, f.Close())
	}
	return n, err
}

// TestModel: connections break at any byte. Each of several callers finds the one znode that it
// writes as its own calls left it: a successful write is visible, an unknown one may be, but not
// after a later write. Watchers see each last value without polling, no change twice, and nothing
// after the watch was removed.
func TestModel(t *testing.T) {
	for seed := range exhaustive.Or[uint64](2, 4) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { testModel(t, seed) })
	}
}

func testModel(t *testing.T, seed uint64) {
	const callers, writes = 8, 120
	s := startServer(t, server.Config{})
	steady, _, _ := connect(t, s)
	var mu sync.Mutex
	chance := rand.New(rand.NewPCG(seed, 1))
	whole := false // connections do not break
	dial := func(ctx context.Context, _ string) (net.Conn, error) {
		conn, err := s.Dial(ctx)
		mu.Lock()
		defer mu.Unlock()
		if err != nil || whole {
			return conn, err
		}
		return &frail{Conn: conn, left: 100 + chance.IntN(6000)}, nil
	}
	changed := make([]chan struct{}, callers)
	delivered := make([]int, callers) // used by OnEvent's goroutine, and by the test after Close
	for i := range changed {
		changed[i] = make(chan struct{}, 10*writes)
	}
	c, err := client.Connect(t.Context(), client.Config{Servers: []string{"a:1", "b:1"}, Dial: dial, OnEvent: func(e client.Event) {
		if e.Type == client.EventSession {
			return
		}
		i, err := strconv.Atoi(strings.TrimPrefix(e.Path, "/n"))
		if err != nil {
			t.Errorf("an event of %q", e.Path)
			return
		}
		delivered[i]++
		changed[i] <- struct{}{}
	}})
	if err != nil {
		t.Fatal(err)
	}
	watched := make([]int, callers) // watches set, or perhaps set
	var all, watchers sync.WaitGroup
	for i := range callers {
		path := fmt.Sprintf("/n%d", i)
		if _, _, err := steady.Create(t.Context(), path, []byte("0"), client.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		last := strconv.Itoa(writes)
		watchers.Go(func() { // ends at the last value
			for {
				data, _, err := c.Get(t.Context(), path, true)
				switch {
				case errors.Is(err, proto.ErrConnectionLoss):
					continue
				case err != nil:
					t.Error(err)
					return
				}
				watched[i]++
				if string(data) == last {
					return
				}
				<-changed[i]
			}
		})
		all.Go(func() { // ends after its writes
			write(t, c, path, writes)
		})
	}
	all.Wait()
	mu.Lock()
	whole = true
	mu.Unlock()
	for i := range callers { // callers whose last write is unknown
		if _, err := steady.Set(t.Context(), fmt.Sprintf("/n%d", i), []byte(strconv.Itoa(writes)), client.AnyVersion); err != nil {
			t.Fatal(err)
		}
	}
	watchers.Wait()
	for i := range callers {
		path := fmt.Sprintf("/n%d", i)
		for { // the last connection may break too
			err := c.RemoveWatches(t.Context(), path, proto.WatcherAny, true)
			if err == nil || errors.Is(err, proto.ErrNoWatcher) {
				break
			}
			if !errors.Is(err, proto.ErrConnectionLoss) {
				t.Fatal(err)
			}
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	for i := range delivered {
		if delivered[i] > watched[i]+1 { // one more for the removal
			t.Errorf("/n%d: %d events of %d watches", i, delivered[i], watched[i])
		}
	}
}

// write writes 1, 2, 3 ... and checks the znode.
func write(t *testing.T, c *client.Client, path string, writes int) {
	ctx := t.Context()
	for v := 1; v <= writes; v++ {
		value := []byte(strconv.Itoa(v))
		may := [][]byte{value}
		var before []byte
		for before == nil {
			data, _, err := c.Get(ctx, path, false)
			if err == nil {
				before = data
			} else if !errors.Is(err, proto.ErrConnectionLoss) {
				t.Error(err)
				return
			}
		}
		_, err := c.Set(ctx, path, value, client.AnyVersion)
		var failed *client.Error
		switch {
		case err == nil:
		case errors.As(err, &failed) && failed.Unknown && failed.Code == proto.ErrConnectionLoss:
			may = append(may, before)
		default:
			t.Error(err)
			return
		}
		for {
			data, _, err := c.Get(ctx, path, false)
			if errors.Is(err, proto.ErrConnectionLoss) {
				continue
			}
			if err != nil || !bytes.Equal(data, may[0]) && (len(may) < 2 || !bytes.Equal(data, may[1])) {
				t.Errorf("%s has %q, %v; want one of %q", path, data, err, may)
				return
			}
			break
		}
	}
}
