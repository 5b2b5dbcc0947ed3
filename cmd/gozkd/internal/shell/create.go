package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

// maxTTL is the largest TTL in milliseconds: a Stat has 40 bits for it.
const maxTTL = 1<<40 - 1

func runCreate(ctx context.Context, c *call) error {
	o := client.CreateOptions{Ephemeral: c.has("e"), Sequential: c.has("s"), Container: c.has("c")}
	if o.Container && (o.Ephemeral || o.Sequential) {
		return usageError("-c cannot be combined with -s or -e. Containers cannot be ephemeral or sequential.")
	}
	if c.has("t") {
		ttl, err := strconv.ParseInt(c.value("t"), 10, 64)
		switch {
		case err != nil:
			return usageError("-t argument must be a long value")
		case o.Ephemeral:
			return usageError("TTLs cannot be used with Ephemeral znodes")
		case o.Container:
			return usageError("TTLs cannot be used with Container znodes")
		case ttl <= 0 || ttl > maxTTL:
			return usageError(fmt.Sprintf("ttl must be positive and cannot be larger than: %d", int64(maxTTL)))
		}
		o.TTL = time.Duration(ttl) * time.Millisecond
	}
	path := c.args[0]
	var data []byte
	if len(c.args) > 1 {
		data = []byte(c.args[1])
	}
	if len(c.args) > 2 {
		o.ACL = c.parseACL(c.args[2])
	}
	whole := path
	if o.Sequential {
		whole += "1"
	}
	if err := checkPath(whole); err != nil {
		return err
	}
	if o.ACL != nil && len(o.ACL) == 0 {
		return c.invalidACL(noACL())
	}
	created, _, err := c.zk.Create(ctx, path, data, o)
	switch {
	case errors.Is(err, proto.ErrEphemeralOnLocalSession):
		c.say(c.err, "Unable to create ephemeral node on a local session")
		return err
	case errors.Is(err, proto.ErrInvalidACL):
		return c.invalidACL(err)
	case err != nil:
		return err
	}
	return c.show(createResult{created})
}

// invalidACL says twice what is wrong with an ACL, as ZooKeeper's shell does behind create.
func (c *call) invalidACL(err error) error {
	var e *client.Error
	if errors.As(err, &e) {
		shown := *e
		if e.Path == noPath {
			shown.Path = ""
		}
		c.say(c.err, keeperMessage(&shown))
	}
	return err
}

type createResult struct {
	Path string `json:"path"`
}

func (r createResult) text(_, err io.Writer) { _, _ = io.WriteString(err, "Created "+r.Path+"\n") }
