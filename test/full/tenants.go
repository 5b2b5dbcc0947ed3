package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
)

// maxRatio is how much slower a tenant's requests may be beside one that sends without end.
const maxRatio = 1.5

// tenants measures a tenant's gets alone, and beside writers of another tenant that has a budget.
// It returns what is wrong.
func tenants(ctx context.Context, p *peer, writers int, budget int64, length time.Duration) error {
	connect := func() *client.Client { return p.connect(ctx).Client }
	calm := connect()
	create(ctx, calm, "/calm", nil)
	create(ctx, calm, "/greedy", nil)
	text := proto.Quota{proto.QuotaOps: budget}.String() // 0: no budget
	for _, path := range []string{"/zookeeper/quota/greedy", "/zookeeper/quota/greedy/zookeeper_budget"} {
		create(ctx, calm, path, []byte(text))
	}
	_ = must.Get(calm.Set(ctx, "/zookeeper/quota/greedy/zookeeper_budget", []byte(text), client.AnyVersion))
	measure := func() (gets times) {
		until, cancel := context.WithTimeout(ctx, length)
		defer cancel()
		pace(until, &gets, paced, func(c context.Context, _ int) error { return znodes{calm}.get(c, "/calm") })
		return gets
	}
	alone := measure()

	var done, refused atomic.Int64
	var failure atomic.Pointer[error]
	var running sync.WaitGroup
	until, cancel := context.WithCancel(ctx)
	clients := [...]*client.Client{connect(), connect(), connect(), connect()}
	for i := range writers {
		running.Go(func() { // ends with until
			for until.Err() == nil {
				_, err := clients[i%len(clients)].Set(until, "/greedy", []byte("x"), client.AnyVersion)
				switch {
				case err == nil:
					done.Add(1)
				case errors.Is(err, proto.ErrThrottledOp):
					refused.Add(1)
				case until.Err() == nil:
					failure.Store(&err)
					return
				}
			}
		})
	}
	beside := measure()
	cancel()
	running.Wait()
	if err := failure.Load(); err != nil {
		must.Do(*err)
	}
	ratio := beside.p99() / alone.p99()
	fmt.Printf("%s, gets of a tenant alone: %v\n", p.Name(), alone)
	fmt.Printf("beside %.0f sets/s of another, and %d refused: %v, p99 %.2f times as long\n",
		float64(done.Load())/length.Seconds(), refused.Load(), beside, ratio)
	switch most := float64(budget) * float64(len(p.Members)) * (1 + 1.1*length.Seconds()); {
	case budget > 0 && float64(done.Load()) > most:
		return fmt.Errorf("%d sets in %v, with a budget of %d/s on each server", done.Load(), length, budget)
	case ratio > maxRatio:
		return fmt.Errorf("p99 is %.2f times as long, allowed are %v", ratio, maxRatio)
	}
	return nil
}

func create(ctx context.Context, c *client.Client, path string, data []byte) {
	if _, _, err := c.Create(ctx, path, data, client.CreateOptions{}); !errors.Is(err, proto.ErrNodeExists) {
		must.Do(err)
	}
}
