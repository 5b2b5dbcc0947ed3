//go:build linux

package main

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/lock"
	"github.com/gozkd/gozkd/recipes/queue"
)

// recipesPeer measures our recipes in a process of its own, as the other libraries are measured.
// args are an address, a root path, a row, the measured seconds, and the unmeasured seconds before.
func recipesPeer(ctx context.Context, args []string) {
	if len(args) != 5 {
		must.Failf("recipes-peer: %d arguments, want 5", len(args))
	}
	seconds, warm := must.Get(strconv.ParseFloat(args[3], 64)), must.Get(strconv.ParseFloat(args[4], 64))
	n := 8
	switch args[2] {
	case "lock":
		n = 1
	case "handover":
		n = 11
	}
	var clients []*recipes.Client
	for range n {
		clients = append(clients, must.Get(recipes.Connect(ctx, []string{args[0]})))
	}
	span := span{begin: time.Now().Add(time.Duration(warm * float64(time.Second)))}
	span.end = span.begin.Add(time.Duration(seconds * float64(time.Second)))
	ctx, cancel := context.WithDeadline(ctx, span.end)
	defer cancel()
	var r peerResult
	switch args[2] {
	case "lock", "handover":
		r = peerLocks(ctx, clients, args[1]+"/lock", args[2] == "handover", span)
	case "queue":
		r = peerQueue(ctx, clients, func(c *recipes.Client) *queue.Queue { return queue.NewSimple(c, args[1]+"/queue") }, span)
	case "queue-built":
		r = peerQueue(ctx, clients, func(c *recipes.Client) *queue.Queue { return queue.New(c, args[1]+"/queue") }, span)
	default:
		must.Failf("recipes-peer: no row %q", args[2])
	}
	r.Seconds = seconds
	for _, c := range clients {
		must.Do(c.Close())
	}
	must.Do(json.NewEncoder(os.Stdout).Encode(r))
}

// span is the measured time.
type span struct{ begin, end time.Time }

func (s span) has(t time.Time) bool { return t.After(s.begin) && t.Before(s.end) }

func peerLocks(ctx context.Context, clients []*recipes.Client, path string, handover bool, span span) peerResult {
	var (
		works    []func()
		mu       sync.Mutex // guards times
		times    []time.Duration
		all      atomic.Int64
		released atomic.Pointer[time.Time]
	)
	for _, c := range clients {
		works = append(works, func() {
			m := lock.NewMutex(c, path, nil)
			for ctx.Err() == nil {
				began := time.Now()
				l, err := m.Lock(ctx)
				now := time.Now()
				if err != nil {
					if ctx.Err() == nil {
						must.Do(err)
					}
					return
				}
				if last := released.Load(); handover && last != nil && span.has(*last) {
					mu.Lock()
					times = append(times, now.Sub(*last))
					mu.Unlock()
				}
				now = time.Now()
				released.Store(&now)
				err = l.Unlock(ctx)
				all.Add(1)
				if err == nil && !handover && span.has(began) {
					times = append(times, time.Since(began))
				}
			}
		})
	}
	must.All(works...)
	if len(times) == 0 {
		must.Failf("no time was measured")
	}
	slices.Sort(times)
	us := func(i int) float64 { return float64(times[i].Nanoseconds()) / 1e3 }
	return peerResult{N: len(times), All: int(all.Load()), P50: us(len(times) / 2), P99: us(len(times) * 99 / 100)}
}

// peerQueue makes every second client put items and the others take them.
func peerQueue(ctx context.Context, clients []*recipes.Client, queueOf func(c *recipes.Client) *queue.Queue, span span) peerResult {
	var (
		works      []func()
		taken, all atomic.Int64
		item       = make([]byte, 100)
	)
	for i, c := range clients {
		works = append(works, func() {
			q := queueOf(c)
			for ctx.Err() == nil {
				var failed error
				if i%2 == 0 {
					failed = q.Put(ctx, item)
				} else if _, failed = q.Take(ctx); failed == nil {
					all.Add(1)
					if span.has(time.Now()) {
						taken.Add(1)
					}
				}
				if ctx.Err() == nil {
					must.Do(failed)
				}
			}
		})
	}
	must.All(works...)
	return peerResult{N: int(taken.Load()), All: int(all.Load())}
}
