// Command full creates znodes on running servers, without end, and says what the servers refuse,
// and how long requests of another client take meanwhile: docs/guide/capacity.md. With -tenants it
// measures how much a tenant notices of another that sends without end.
//
// Exit status: 1 if a request failed otherwise, a third of the znodes could not be deleted or did
// not make room, or a tenant noticed too much; 2 for wrong usage.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
)

func main() { must.Program("full", run) }

// load is what the writers have done.
type load struct {
	made, refused, failed atomic.Int64
	last                  atomic.Value // the last error of a failed request
	mu                    sync.Mutex   // guards paths
	paths                 []string
}

func run(ctx context.Context, args []string) {
	flags := flag.NewFlagSet("full", flag.ContinueOnError)
	servers := flags.String("servers", "127.0.0.1:2181", "connect string")
	bytes := flags.Int("bytes", 2000, "data of a znode")
	writers := flags.Int("writers", 64, "how many create at once, in one session")
	length := flags.Duration("time", time.Minute, "how long")
	two := flags.Bool("tenants", false, "do not fill: measure a tenant alone, and beside another that sends without end")
	budget := flags.Int64("budget", 1000, "with -tenants, operations per second of the other; 0: no budget")
	must.Parsed(flags.Parse(args))
	connect := func() *client.Client {
		return must.Get(client.Connect(ctx, client.Config{Servers: strings.Split(*servers, ",")}))
	}
	if *two {
		tenants(ctx, connect, *writers, *budget, *length)
		return
	}
	writer, other := connect(), connect()
	dir, _ := must.Get2(writer.Create(ctx, "/full-", nil, client.CreateOptions{Sequential: true}))
	var l load
	until, cancel := context.WithTimeout(ctx, *length)
	defer cancel()
	var running sync.WaitGroup
	data := make([]byte, *bytes)
	for i := range *writers {
		running.Go(func() { l.write(until, writer, fmt.Sprintf("%s/%d", dir, i), data) }) // ends with until
	}
	p50, p99, n := gets(until, other, dir)
	running.Wait()
	fmt.Printf("created %d, refused %d, failed %d; %d gets of another client: p50 %v, p99 %v\n",
		l.made.Load(), l.refused.Load(), l.failed.Load(), n, p50, p99)
	if l.failed.Load() > 0 {
		must.Failf("the last failure: %v", l.last.Load())
	}
	for _, path := range l.paths[:len(l.paths)/3] {
		must.Do(other.Delete(ctx, path, -1))
	}
	_, _ = must.Get2(other.Create(ctx, dir+"/again", data, client.CreateOptions{}))
	fmt.Println("a third was deleted, and a create succeeds again")
}

// gets measures gets of a znode until the context ends.
func gets(until context.Context, c *client.Client, path string) (p50, p99 time.Duration, n int) {
	var took []time.Duration
	for until.Err() == nil {
		began := time.Now()
		if _, _, err := c.Get(until, path, false); err == nil {
			took = append(took, time.Since(began))
		}
		time.Sleep(5 * time.Millisecond)
	}
	slices.Sort(took)
	n = len(took)
	return took[n/2], took[n*99/100], n
}

// write creates znodes whose paths begin with prefix.
func (l *load) write(ctx context.Context, c *client.Client, prefix string, data []byte) {
	for n := 0; ctx.Err() == nil; n++ {
		path := fmt.Sprintf("%s-%d", prefix, n)
		switch _, _, err := c.Create(ctx, path, data, client.CreateOptions{}); {
		case err == nil:
			l.made.Add(1)
			l.mu.Lock()
			l.paths = append(l.paths, path)
			l.mu.Unlock()
		case errors.Is(err, proto.ErrQuotaExceeded):
			l.refused.Add(1)
		case ctx.Err() == nil:
			l.failed.Add(1)
			l.last.Store(err)
			time.Sleep(100 * time.Millisecond)
		}
	}
}
