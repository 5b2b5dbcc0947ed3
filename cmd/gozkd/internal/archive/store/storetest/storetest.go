// Package storetest has a store in memory that loses, delays, repeats and fails requests, for
// tests.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
)

// ErrFault is the error of requests that fail on purpose.
var ErrFault = errors.New("storetest: 503 Slow Down")

// Faults are those of requests. Probabilities are from 0 to 1.
type Faults struct {
	Down        bool          // every request fails
	Fail        float64       // a request has no effect, and fails
	LoseReply   float64       // a request has its effect, and fails
	Repeat      float64       // a write happens again later
	MaxDelay    time.Duration // of requests
	ListDelay   time.Duration // until a new object is in listings, and a deleted one is not, at most
	Ahead       time.Duration // the store's clock is
	Unavailable string        // of a handle that was killed
}

// Memory is the content of a store. Its methods may be called from any goroutine.
type Memory struct {
	mu      sync.Mutex
	objects map[string]stored
	rand    *rand.Rand
	faults  Faults
	puts    int
	clash   error // an object was replaced by another content
	later   sync.WaitGroup
}

// stored is an object, and since when listings show it or its deletion.
type stored struct {
	data     []byte
	listed   time.Time // from then on
	modified time.Time
	deleted  bool
}

// New returns an empty store without faults.
func New(seed uint64) *Memory {
	return &Memory{objects: make(map[string]stored), rand: rand.New(rand.NewPCG(seed, 1))}
}

// Set sets the faults of all further requests.
func (m *Memory) Set(f Faults) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults = f
}

// Settle waits for requests that are repeated, and for those that may still be. Set must have ended
// the faults.
func (m *Memory) Settle() { m.later.Wait() }

// Names returns the names of all objects.
func (m *Memory) Names() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(m.objects)) {
		if !m.objects[name].deleted {
			names = append(names, name)
		}
	}
	return names
}

// Each calls f with all objects, in the order of their names.
func (m *Memory) Each(f func(name string, data []byte)) {
	for _, name := range m.Names() {
		f(name, m.objects[name].data)
	}
}

// Change replaces the content of an object by the result of f; nil deletes the object.
func (m *Memory) Change(name string, f func([]byte) []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b := f(slices.Clone(m.objects[name].data)); b == nil {
		delete(m.objects, name)
	} else {
		m.objects[name] = stored{data: b, modified: time.Now().Add(m.faults.Ahead)}
	}
}

// Clash returns an error if an object was ever replaced by one with another content.
func (m *Memory) Clash() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clash
}

// Client is the view of one process. After Kill all its requests fail, those under way included.
type Client struct {
	m      *Memory
	killed chan struct{}
	once   sync.Once
}

// Client returns the view of a new process.
func (m *Memory) Client() *Client { return &Client{m: m, killed: make(chan struct{})} }

// Kill makes all requests fail.
func (c *Client) Kill() { c.once.Do(func() { close(c.killed) }) }

// String implements store.Store.
func (c *Client) String() string { return "memory" }

var _ store.Store = (*Client)(nil)

// do carries out a request with faults.
func (c *Client) do(ctx context.Context, write bool, effect func()) error {
	m := c.m
	m.mu.Lock()
	f := m.faults
	fail, lose, repeat := m.rand.Float64() < f.Fail, m.rand.Float64() < f.LoseReply, write && m.rand.Float64() < f.Repeat
	wait, again := m.delay(f.MaxDelay), m.delay(10*f.MaxDelay)
	if repeat { // Settle waits for this request from now on
		m.later.Add(1)
		defer m.later.Done()
	}
	m.mu.Unlock()
	if wait > 0 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			lose = true // the request may still arrive
		}
	}
	select {
	case <-c.killed: // at any point of a request: half of those under way arrive
		if fail = f.Down || again%2 == 0; fail {
			return ErrFault
		}
		lose = true
	default:
	}
	if f.Down || fail {
		return ErrFault
	}
	m.mu.Lock()
	effect()
	m.mu.Unlock()
	if repeat {
		// Ends after the delay; awaited by Settle, which waits for this request already.
		m.later.Go(func() {
			time.Sleep(again)
			m.mu.Lock()
			defer m.mu.Unlock()
			effect()
		})
	}
	if lose {
		return fmt.Errorf("%w: the reply was lost", ErrFault)
	}
	return ctx.Err()
}

func (m *Memory) delay(most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	return time.Duration(m.rand.Int64N(int64(most)))
}

// Put implements store.Store.
func (c *Client) Put(ctx context.Context, name string, data []byte) error {
	data = slices.Clone(data)
	return c.do(ctx, true, func() {
		m := c.m
		old, there := m.objects[name]
		switch {
		case there && old.deleted: // a repeated request must not bring it back in a listing that forgot it
		case there && !slices.Equal(old.data, data):
			m.clash = fmt.Errorf("%s was replaced by another content", name)
		case !there:
			m.puts++
			now := time.Now()
			listed := now.Add(m.delay(m.faults.ListDelay))
			m.objects[name] = stored{data: data, listed: listed, modified: now.Add(m.faults.Ahead)}
		}
	})
}

// Get implements store.Store.
func (c *Client) Get(ctx context.Context, name string) (data []byte, err error) {
	there := false
	err = c.do(ctx, false, func() {
		var o stored
		o, there = c.m.objects[name]
		data, there = slices.Clone(o.data), there && !o.deleted
	})
	if err == nil && !there {
		err = fmt.Errorf("%w: %s", store.ErrNotFound, name)
	}
	return data, err
}

// List implements store.Store.
func (c *Client) List(ctx context.Context, prefix, after string) (list []store.Object, err error) {
	err = c.do(ctx, false, func() {
		now := time.Now()
		for _, name := range slices.Sorted(maps.Keys(c.m.objects)) {
			o := c.m.objects[name]
			if strings.HasPrefix(name, prefix) && name > after && !o.deleted && !now.Before(o.listed) {
				list = append(list, store.Object{Name: name, Size: int64(len(o.data)), Modified: o.modified})
			}
		}
	})
	return list, err
}

// Delete implements store.Store.
func (c *Client) Delete(ctx context.Context, name string) error {
	return c.do(ctx, true, func() {
		if o, there := c.m.objects[name]; there {
			o.deleted = true
			c.m.objects[name] = o
		}
	})
}
