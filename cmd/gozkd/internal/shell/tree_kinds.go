package shell

import (
	"context"
	"errors"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/probe"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/shell/subtree"
)

// maxKinds bounds what is read of containers and TTL znodes: some ten million of them.
const maxKinds = 1 << 30

// kinds asks the server that zk is connected to which znodes are containers and which have a time to live. A ZooKeeper can't
// say, and a gozkd only if its whitelist has the word: then the user is told, and the result is nil. connect is how zk was opened.
func (c *call) kinds(ctx context.Context, zk *client.Client, connect string) subtree.Kinds {
	_, chroot, err := client.ParseServers(connect)
	var answer string
	if err == nil {
		answer, err = probe.Asker{Timeout: c.settings.timeout, MaxBytes: maxKinds}.Ask(ctx, zk.Session().Server, "kind")
	}
	var kinds subtree.Kinds
	if err == nil {
		kinds, err = subtree.ParseKinds(answer, chroot)
	}
	if err == nil {
		return kinds
	}
	why := "the server does not tell them apart"
	switch {
	case errors.Is(err, probe.ErrNotAllowed):
		why = "add kind to 4lw.commands.whitelist, and the server tells them apart"
	case !errors.Is(err, probe.ErrNoAnswer):
		why = err.Error()
	}
	c.say(c.err, "Containers and TTL znodes count as persistent ones: "+why)
	return nil
}
