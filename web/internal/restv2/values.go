package restv2

import (
	"net/http"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/strictjson"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/web/internal/answer"
	"github.com/gozkd/gozkd/web/internal/call"
)

// Stat is a Stat in JSON.
type Stat struct {
	proto.StatJSON
	Kind  string `json:"kind,omitempty"` // container or ttl
	TTLMs int64  `json:"ttlMs,omitempty"`
}

type operation struct {
	Op         string          `json:"op"`
	Path       string          `json:"path"`
	Data       []byte          `json:"data"`
	Version    *int32          `json:"version"`
	Mode       string          `json:"mode"`
	Sequential bool            `json:"sequential"`
	TTL        int64           `json:"ttl"`
	ACL        []proto.ACLJSON `json:"acl"`
}

func (o *operation) op() (op client.Op, err error) {
	if o.Op != "create" && o.Version == nil {
		return op, answer.Bad("%s has no version: name the version that you saw, or -1 for any", o.Op)
	}
	switch o.Op {
	case "create":
		options, err := createOptions(o.Mode, o.Sequential, o.TTL, o.ACL)
		if options.Ephemeral {
			return op, answer.Bad("a multi cannot create ephemeral znodes: they need a session of their own, see POST")
		}
		return client.CreateOp(o.Path, o.Data, options), err
	case "set":
		return client.SetOp(o.Path, o.Data, *o.Version), nil
	case "delete":
		return client.DeleteOp(o.Path, *o.Version), nil
	case "check":
		return client.CheckOp(o.Path, *o.Version), nil
	}
	return op, answer.Bad("op %q is unknown: allowed are create, set, delete and check", o.Op)
}

const maxTTL = 1<<40 - 1

func createOptions(mode string, sequential bool, ttlMs int64, acl []proto.ACLJSON) (o client.CreateOptions, err error) {
	if o.ACL, err = proto.ACLFromJSON(acl); err != nil {
		return o, answer.Bad("acl: %v", err)
	}
	o.Sequential = sequential
	if ttlMs < 0 || ttlMs > maxTTL {
		return o, answer.Bad("ttl is %d, allowed are 1 to %d milliseconds", ttlMs, int64(maxTTL))
	}
	o.TTL = time.Duration(ttlMs) * time.Millisecond
	switch mode {
	case "", "persistent":
	case "ephemeral":
		o.Ephemeral = true
	case "container":
		o.Container = true
	default:
		return o, answer.Bad("mode %q is unknown: allowed are persistent, ephemeral and container", mode)
	}
	return o, nil
}

func decodeJSON(r *http.Request, b []byte, into any) error {
	return call.Of(r).Heavy(len(b), func() error {
		if err := strictjson.Decode(b, into); err != nil {
			return answer.Bad("the body is not the JSON that is expected: %v", err)
		}
		return nil
	})
}
