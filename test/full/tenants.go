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
func tenants(ctx context.Context, servers []string, writers int, budget int64, length time.Duration) {
	connect := func() *client.Client { return must.Get(client.Connect(ctx, client.Config{Servers: servers})) }
	calm := connect()
	create(ctx, calm, "/calm", nil)
	create(ctx, calm, "/greedy", nil)
	text := proto.Quota{proto.QuotaOps: budget}.String() // 0: no budget
	for _, path := range []string{"/zookeeper/quota/greedy", "/zookeeper/quota/greedy/zookeeper_budget"} {
		create(ctx, calm, path, []byte(text))
	}
	_ = must.Get(calm.Set(ctx, "/zookeeper/quota/greedy/zookeeper_budget", []byte(text), client.AnyVersion))
	measure := func() (p99 float64) {
		until, cancel := context.WithTimeout(ctx, length)
		defer cancel()
		var gets times
		pace(until, &gets, paced, func(c context.Context, _ int) error { return znodes{calm}.get(c, "/calm") })
		p99 = gets.quantile(.99)
		fmt.Printf("%d gets: p50 %.2f ms, p99 %.2f ms\n", len(gets), gets.quantile(.5), p99)
		return p99
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
	rate := float64(done.Load()) / length.Seconds()
	ratio := beside / alone
	fmt.Printf("beside %.0f sets/s of another tenant, and %d refused: p99 %.2f times as long\n", rate, refused.Load(), ratio)
	if most := float64(budget) * (1 + 1.1*length.Seconds()); budget > 0 && float64(done.Load()) > most {
		must.Failf("the budget is %d sets/s", budget)
	}
	if ratio > maxRatio {
		must.Failf("at most %v times", maxRatio)
	}
}

func create(ctx context.Context, c *client.Client, path string, data []byte) {
	if _, _, err := c.Create(ctx, path, data, client.CreateOptions{}); !errors.Is(err, proto.ErrNodeExists) {
		must.Do(err)
	}
}
