// Queue is the walk of "Building a distributed concurrent queue with Apache ZooKeeper": a queue, first in, first out, into which three items
// are put and taken out again; then producers and consumers, each with a connection of its own, the consumers waiting for items.
//
//	go run ./examples/queue                          # with a server in this process
//	go run ./examples/queue -server 127.0.0.1:2181   # with gozkd or any ZooKeeper
//
// The article leaves two things to the reader, which package queue does: an item whose put lost its answer is there once, and of many
// consumers that wait only as many wake up as there are items for.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/gozkd/gozkd/examples/internal/walk"
	"github.com/gozkd/gozkd/recipes/queue"
)

const path = "/myfirstqueue"

const (
	producers = 2
	consumers = 3
	each      = 5 // items of a producer
)

func main() { walk.Main(run) }

func run(ctx context.Context, connect walk.Connect, out io.Writer) error {
	if err := oneByOne(ctx, connect, out); err != nil {
		return err
	}
	working, done := context.WithCancel(ctx)
	defer done()
	var taken atomic.Int32
	return walk.Together(producers+consumers, func(i int) error {
		if i <= producers {
			return produce(ctx, i, connect, out)
		}
		err := consume(working, i-producers, connect, out, func() {
			if taken.Add(1) == producers*each {
				done() // the others need not wait for more
			}
		})
		if errors.Is(err, context.Canceled) && ctx.Err() == nil {
			return nil
		}
		return err
	})
}

// oneByOne puts three items, and takes until there are none.
func oneByOne(ctx context.Context, connect walk.Connect, out io.Writer) error {
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
			return q.Close(ctx)
		}
		fmt.Fprintln(out, "dequeued:", string(m.Data))
	}
}

func produce(ctx context.Context, id int, connect walk.Connect, out io.Writer) error {
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

// consume takes items until ctx ends. Take waits for one; who takes an item has it alone.
func consume(ctx context.Context, id int, connect walk.Connect, out io.Writer, took func()) error {
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
