package shell

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
)

func runAddAuth(ctx context.Context, c *call) error {
	var credential []byte
	if len(c.args) > 1 {
		credential = []byte(c.args[1])
	}
	if err := c.zk.AddAuth(ctx, c.args[0], credential); err != nil {
		return err
	}
	c.auths = append(c.auths, client.Auth{Scheme: c.args[0], Credential: credential})
	return nil
}

func runWhoAmI(ctx context.Context, c *call) error {
	ids, err := c.zk.WhoAmI(ctx)
	if err != nil {
		return err
	}
	type identity struct {
		Scheme string `json:"scheme"`
		User   string `json:"user"`
	}
	var list []identity
	text := "Auth scheme: User\n"
	for _, id := range ids {
		list = append(list, identity{id.Scheme, id.User})
		text += fmt.Sprintf("%s: %s\n", id.Scheme, id.User)
	}
	return c.print(list, text)
}

func runEphemerals(ctx context.Context, c *call) error {
	path := "/"
	if len(c.args) > 0 {
		path = c.args[0]
		if err := checkPath(path); err != nil {
			return err
		}
	}
	paths, err := c.zk.Ephemerals(ctx, path)
	if err != nil {
		return err
	}
	return c.print(paths, "["+strings.Join(paths, ", ")+"]\n")
}

func runCount(ctx context.Context, c *call) error {
	n, err := c.zk.ChildrenCount(ctx, c.args[0])
	if err != nil {
		return err
	}
	return c.print(struct {
		Path  string `json:"path"`
		Count int    `json:"count"`
	}{c.args[0], n}, fmt.Sprintln(n))
}

// syncTimeout bounds how long sync waits for the leader.
const syncTimeout = 30 * time.Second

func runSync(ctx context.Context, c *call) error {
	path := c.args[0]
	if err := checkPath(path); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	_, err := c.zk.Sync(ctx, path)
	var e *client.Error
	if errors.As(err, &e) && ctx.Err() == nil {
		c.note(fmt.Sprintf("Sync has failed. rc=%d", int32(e.Code)))
		return errFailed
	}
	if err != nil {
		return err
	}
	return c.print(map[string]string{"path": path}, "Sync is OK\n")
}

func runVersion(_ context.Context, c *call) error {
	if len(c.args) > 0 {
		return errUsage
	}
	return c.print(map[string]string{"version": cli.Version()}, "ZooKeeper CLI version: "+cli.Version()+"\n")
}
