package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	var r whoResult
	for _, id := range ids {
		r = append(r, identity{id.Scheme, id.User})
	}
	return c.show(r)
}

type identity struct {
	Scheme string `json:"scheme"`
	User   string `json:"user"`
}

type whoResult []identity

func (r whoResult) text(out, _ io.Writer) {
	_, _ = io.WriteString(out, "Auth scheme: User\n")
	for _, id := range r {
		_, _ = fmt.Fprintf(out, "%s: %s\n", id.Scheme, id.User)
	}
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
	return c.show(ephemeralsResult(paths))
}

type ephemeralsResult []string

func (r ephemeralsResult) text(out, _ io.Writer) {
	_, _ = io.WriteString(out, "["+strings.Join(r, ", ")+"]\n")
}

func runCount(ctx context.Context, c *call) error {
	path := c.args[0]
	if err := checkPath(path); err != nil {
		return err
	}
	n, err := c.zk.ChildrenCount(ctx, path)
	if err != nil {
		return err
	}
	return c.show(countResult{path, n})
}

type countResult struct {
	Path  string `json:"path"`
	Count int    `json:"count"`
}

func (r countResult) text(out, _ io.Writer) { _, _ = fmt.Fprintln(out, r.Count) }

// syncTimeout is how long sync waits for the leader.
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
	return c.show(syncResult{path})
}

type syncResult struct {
	Path string `json:"path"`
}

func (r syncResult) text(out, _ io.Writer) { _, _ = io.WriteString(out, "Sync is OK\n") }

func runVersion(_ context.Context, c *call) error {
	if len(c.args) > 0 {
		return errUsage
	}
	return c.show(versionResult{cli.Version()})
}

type versionResult struct {
	Version string `json:"version"`
}

func (r versionResult) text(out, _ io.Writer) {
	_, _ = io.WriteString(out, "ZooKeeper CLI version: "+r.Version+"\n")
}

// note writes a line to where ZooKeeper's shell writes it, standard output, unless that is for JSON only.
func (s *Shell) note(text string) {
	to := s.out
	if s.settings.json {
		to = s.err
	}
	s.say(to, text)
}
