package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/queue"
	"github.com/gozkd/gozkd/zktest"
)

// ends is a producer's and a consumer's use of a queue.
type ends interface {
	Put(ctx context.Context, items ...[]byte) error
	Take(ctx context.Context) (queue.Message, error)
}

// as sends the same requests as Curator's SimpleDistributedQueue: one listing per item, and every
// change wakes all waiting consumers.
type as struct {
	c    *recipes.Client
	path string
}

func (q as) Put(ctx context.Context, data ...[]byte) error {
	_, err := q.c.Create(ctx, q.path+"/qn-", data[0], recipes.CreateOptions{Sequential: true, Parents: true})
	return err
}

func (q as) Take(ctx context.Context) (queue.Message, error) {
	for {
		names, _, fires, err := q.c.ChildrenW(ctx, q.path)
		if err != nil {
			return queue.Message{}, err
		}
		slices.Sort(names)
		for _, name := range names {
			data, _, err := q.c.Get(ctx, q.path+"/"+name)
			if err == nil {
				err = q.c.Delete(ctx, q.path+"/"+name, -1)
			}
			if err == nil {
				return queue.Message{Data: data}, nil
			}
			if !errors.Is(err, proto.ErrNoNode) {
				return queue.Message{}, err
			}
		}
		select {
		case <-fires:
		case <-ctx.Done():
			return queue.Message{}, ctx.Err()
		}
	}
}

// BenchmarkThroughput measures items per second with four producers and four consumers, each with
// its own connection.
func BenchmarkThroughput(b *testing.B) {
	for _, bench := range []struct {
		name string
		make func(c *recipes.Client) ends
	}{
		{"simple", func(c *recipes.Client) ends { return queue.NewSimple(c, "/q") }},
		{"curator", func(c *recipes.Client) ends { return queue.New(c, "/q") }},
		{"as Curator's simple", func(c *recipes.Client) ends { return as{c, "/q"} }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			s := zktest.Start(b)
			s.Load(map[string]string{"/q": ""})
			const each = 4
			var all []ends
			for range 2 * each {
				c, err := recipes.Connect(b.Context(), strings.Split(s.ConnectString(), ","))
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { _ = c.Close() })
				all = append(all, bench.make(c))
			}
			ctx, stop := context.WithCancel(b.Context())
			defer stop()
			var (
				wg    sync.WaitGroup
				mu    sync.Mutex
				left  = b.N
				taken int
			)
			data := make([]byte, 100)
			b.ResetTimer()
			before := s.Server().Status()
			receivedBefore := received(s)
			begun := time.Now()
			for i, q := range all {
				if i%2 == 0 {
					wg.Go(func() {
						for {
							mu.Lock()
							more := left > 0
							left--
							mu.Unlock()
							if !more {
								return
							}
							if err := q.Put(b.Context(), data); err != nil { // the item may be taken before Put returns
								b.Error(err)
								return
							}
						}
					})
					continue
				}
				wg.Go(func() {
					for ctx.Err() == nil {
						if _, err := q.Take(ctx); err != nil {
							if ctx.Err() == nil {
								b.Error(err)
							}
							return
						}
						mu.Lock()
						if taken++; taken == b.N {
							stop()
						}
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			after := s.Server().Status()
			b.ReportMetric(float64(after.Zxid-before.Zxid)/float64(b.N), "txns/item")
			b.ReportMetric(float64(received(s)-receivedBefore)/float64(b.N), "requests/item")
			b.ReportMetric(float64(b.N)/time.Since(begun).Seconds(), "items/s")
		})
	}
}

// received returns how many requests a server has received.
func received(s *zktest.Server) (n int) {
	for _, v := range s.Server().Facts().Monitor() {
		if v.Name == "packets_received" {
			n, _ = strconv.Atoi(fmt.Sprint(v.Is))
		}
	}
	return n
}
