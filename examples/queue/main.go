// Queue is the program of "Building a distributed concurrent queue with Apache ZooKeeper". Three
// items are put into a first-in, first-out queue and taken out again. Then producers and consumers,
// each with its own connection, use the queue at the same time.
//
//	go run ./examples/queue                          # with a server in this process
//	go run ./examples/queue -server 127.0.0.1:2181   # with gozkd or any ZooKeeper
//
// Package queue solves two problems that the article leaves open. When the answer to a put is lost,
// the item is in the queue once, not twice. When an item arrives, only a few of many waiting
// consumers wake.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/gozkd/gozkd/examples/internal/example"
	"github.com/gozkd/gozkd/recipes/queue"
)

const path = "/myfirstqueue"

const (
	producers = 2
	consumers = 3
	each      = 5 // items per producer
)

func main() { example.Main(run) }

func run(ctx context.Context, connect example.Connect, out io.Writer) error {
	if err := oneByOne(ctx, connect, out); err != nil {
		return err
	}
	working, done := context.WithCancel(ctx)
	defer done()
	var taken atomic.Int32
	return example.Together(producers+consumers, func(i int) error {
		if i <= producers {
			return produce(ctx, i, connect, out)
		}
		err := consume(working, i-producers, connect, out, func() {
			if taken.Add(1) == producers*each {
				done() // no consumer needs to wait for more
			}
		})
		if errors.Is(err, context.Canceled) && ctx.Err() == nil {
			return nil
		}
		return err
	})
}

// oneByOne puts three items, and then takes items until the queue is empty.
func oneByOne(ctx context.Context, connect example.Connect, out io.Writer) error {
	c, err := connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	q := queue.NewSimple(c, path)
	for _, item := range []string{"first", "second", "third"} {
		if err := q.Put(ctx, []byte(item)); err != nil {
			return err
		}
		fmt.Fprintln(out, "enqueued:", item)
	}
	for {
		m, there, err := q.TryTake(ctx)
		if err != nil {
			return err
		}
		if !there {
			fmt.Fprintln(out, "dequeued: nothing, the queue is empty")
			return q.Close()
		}
		fmt.Fprintln(out, "dequeued:", string(m.Data))
	}
}

func produce(ctx context.Context, id int, connect example.Connect, out io.Writer) error {
	c, err := connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	q := queue.NewSimple(c, path)
	for n := 1; n <= each; n++ {
		item := fmt.Sprintf("item %d.%d", id, n)
		if err := q.Put(ctx, []byte(item)); err != nil {
			return err
		}
		fmt.Fprintln(out, "producer", id, "put", item)
	}
	return nil
}

// consume takes items until ctx ends. Take removes an item, so no other consumer gets it.
func consume(ctx context.Context, id int, connect example.Connect, out io.Writer, took func()) error {
	c, err := connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	q := queue.NewSimple(c, path)
	for {
		m, err := q.Take(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "consumer", id, "took", string(m.Data))
		took()
	}
}
