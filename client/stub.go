package client

import (
	"context"
	"sync"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// Client is a session with an ensemble.
type Client struct {
	cfg Config
	mu  sync.Mutex
}

// Session is what the server negotiated.
type Session struct {
	ID       int64
	Password []byte
	Timeout  time.Duration
	Server   string // the address that the Client is connected to, or ""
	ReadOnly bool   // that server has no quorum
}

// Connect opens a session.
func Connect(ctx context.Context, cfg Config) (*Client, error) {
	_ = ctx
	return nil, proto.ErrUnimplemented
}

// Close ends the session.
func (c *Client) Close() error { return proto.ErrUnimplemented }

// Session returns the session.
func (c *Client) Session() Session { return Session{} }

// State returns the state.
func (c *Client) State() State { return Connecting }

// Done is closed when the session ended for good.
func (c *Client) Done() <-chan struct{} { return nil }

// Err returns why.
func (c *Client) Err() error { return nil }

// AddAuth adds a credential.
func (c *Client) AddAuth(ctx context.Context, scheme string, credential []byte) error {
	return proto.ErrUnimplemented
}

type watchKind uint8

const (
	watchData watchKind = iota
	watchExists
	watchChildren
	watchPersistent
	watchRecursive
)

type watchOn struct {
	path string
	kind watchKind
}

func watchIf(on bool, path string, kind watchKind) *watchOn {
	if !on {
		return nil
	}
	return &watchOn{path, kind}
}

type request struct {
	op      proto.OpCode
	path    string
	write   bool
	body    func([]byte) []byte
	watch   *watchOn
	settled func(proto.ErrCode)
}

func (c *Client) do(ctx context.Context, r request, decode func(*jute.Decoder)) error {
	_, _, _ = ctx, r, decode
	return proto.ErrUnimplemented
}

func (c *Client) forgetWatches(path string, kind proto.WatcherType) {}
