// Crawler is the program of "My 1st ZooKeeper Recipe: Distributed Queue with Locking": web crawlers
// share a queue of links. A crawler locks a link, fetches the page, and only then removes the link
// from the queue. So no two crawlers fetch a link at the same time, and no link is lost when a
// fetch fails or a crawler dies.
//
//	go run ./examples/crawler                          # with a server in this process
//	go run ./examples/crawler -server 127.0.0.1:2181   # with gozkd or any ZooKeeper
//
// In the article each link wakes all waiting crawlers. Here each link wakes at most three, however
// many wait.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/examples/internal/example"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/queue"
)

const (
	adders   = 2
	crawlers = 3
	each     = 4 // links per adder
)

func main() { example.Main(run) }

func links(c *recipes.Client) *queue.Queue { return queue.New(c, "/queue", queue.Locks("/queue_lock")) }

func run(ctx context.Context, connect example.Connect, out io.Writer) error {
	working, done := context.WithCancel(ctx)
	defer done()
	var fetched atomic.Int32
	return example.Together(adders+crawlers+1, func(i int) (err error) {
		switch {
		case i <= adders:
			return add(ctx, i, connect, out)
		case i <= adders+crawlers:
			err = crawl(working, i-adders, connect, out, func() {
				if fetched.Add(1) == adders*each {
					done() // no crawler needs to wait for more
				}
			})
		default:
			err = dying(working, connect, out)
		}
		if errors.Is(err, context.Canceled) && ctx.Err() == nil {
			return nil
		}
		return err
	})
}

// add puts links into the queue, like the article's QueueAddWorker.
func add(ctx context.Context, id int, connect example.Connect, out io.Writer) error {
	c, err := connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	for n := 1; n <= each; n++ {
		link := fmt.Sprintf("http://site-%d.example/%d", id, n)
		if err := links(c).Put(ctx, []byte(link)); err != nil {
			return err
		}
		fmt.Fprintln(out, "added", link)
	}
	return nil
}

// crawl fetches links until ctx ends. The third fetch fails: its link stays for the next crawler.
func crawl(ctx context.Context, id int, connect example.Connect, out io.Writer, fetched func()) error {
	c, err := connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	errBusy := errors.New("server is busy")
	for n := 1; ; n++ {
		err := links(c).Handle(ctx, func(ctx context.Context, link *queue.Item) error {
			if err := example.Sleep(ctx, 100*time.Millisecond); err != nil {
				return err
			}
			if n == 3 {
				return fmt.Errorf("%s: %w", link.Data, errBusy)
			}
			fmt.Fprintln(out, "crawler", id, "fetched", string(link.Data))
			return nil
		})
		switch {
		case err == nil:
			fetched()
		case errors.Is(err, errBusy):
			fmt.Fprintln(out, "crawler", id, "failed:", err)
		default:
			return err
		}
	}
}

// dying is a crawler whose process ends during a fetch. The session ends, and with the session the
// lock, so another crawler gets the link.
func dying(ctx context.Context, connect example.Connect, out io.Writer) error {
	c, err := connect(ctx)
	if err != nil {
		return err
	}
	link, err := links(c).TakeLocked(ctx)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	fmt.Fprintln(out, "a crawler dies while it fetches", string(link.Data))
	return c.Close()
}
