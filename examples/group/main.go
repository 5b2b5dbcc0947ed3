// Group is the program of "Distributed Coordination With ZooKeeper", parts 2 and 3. Three members
// join a group, each with its data. Then two members leave, one dies, and the group is deleted.
// After each change the program prints the list of the members.
//
//	go run ./examples/group                          # with a server in this process
//	go run ./examples/group -server 127.0.0.1:2181   # with gozkd or any ZooKeeper
//
// With -server, run the program twice, or add a member in zkCli.sh. The program runs until Ctrl-C.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gozkd/gozkd/examples/internal/example"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/cache"
	"github.com/gozkd/gozkd/recipes/group"
)

const name = "sample-group"

func main() { example.Main(run) }

func run(ctx context.Context, connect example.Connect, out io.Writer) error {
	c, err := connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Create(ctx, "/"+name, nil, recipes.CreateOptions{}); err != nil && !errors.Is(err, proto.ErrNodeExists) {
		return err
	}
	return example.Together(2, func(i int) error {
		if i == 1 {
			return listForever(ctx, c, out)
		}
		return joinAndLeave(ctx, c, connect)
	})
}

// listForever prints the members, and again after each change, also after a lost connection.
func listForever(ctx context.Context, c *recipes.Client, out io.Writer) error {
	return cache.WatchChildren(ctx, c, "/"+name, func(members []string) bool {
		switch {
		case members == nil:
			fmt.Fprintf(out, "Group %s does not exist\n", name)
		case len(members) == 0:
			fmt.Fprintf(out, "No members in group %s\n", name)
		default:
			fmt.Fprintln(out, members)
		}
		return true // go on
	})
}

// joinAndLeave makes three join. Then one leaves, one dies, one leaves, and the group is deleted.
func joinAndLeave(ctx context.Context, admin *recipes.Client, connect example.Connect) error {
	var (
		clients [3]*recipes.Client
		members [3]*group.PersistentZnode
	)
	for i := range clients {
		if err := example.Sleep(ctx, time.Second); err != nil {
			return err
		}
		c, err := connect(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		clients[i] = c
		members[i], err = group.New(c, "/"+name).Join(ctx, fmt.Sprint("child-", i+1), fmt.Append(nil, "data-", i+1))
		if err != nil {
			return err
		}
	}
	for _, end := range []func() error{
		func() error { return members[0].Close() },
		clients[1].Close, // a process that dies loses its session and its membership
		func() error { return members[2].Close() },
		func() error { return deleteGroup(ctx, admin) },
	} {
		if err := example.Sleep(ctx, time.Second); err != nil {
			return err
		}
		if err := end(); err != nil {
			return err
		}
	}
	return nil
}

// deleteGroup deletes the group, unless there are members, such as those of another process.
func deleteGroup(ctx context.Context, c *recipes.Client) error {
	err := c.Delete(ctx, "/"+name, -1)
	if errors.Is(err, proto.ErrNotEmpty) || errors.Is(err, proto.ErrNoNode) {
		return nil
	}
	return err
}
