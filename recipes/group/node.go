package group

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/persistentnode"
)

var (
	// ErrTaken means that the znode is there, and is another session's; or an ephemeral where none is wanted.
	ErrTaken = persistentnode.ErrTaken
	// ErrClosed means that the Node was closed, or its Client.
	ErrClosed = persistentnode.ErrClosed
)

// NodeOptions is how a Node's znode is made. The zero value is a persistent one with the Client's ACL.
type NodeOptions struct {
	Mode recipes.Mode
	TTL  time.Duration // of recipes.TTL and TTLSequential
	ACL  []zk.ACL      // nil: the Client's
}

// Node is a znode that is kept: made when it is missing, whether its session has ended or somebody has deleted it. Safe for concurrent use.
//
// An ephemeral that another session has is waited for. One that is no ephemeral may be there: it is taken as it is, and gets the data. A
// sequential one gets a GUID before its name, as Create does it for protected ones, and keeps the name that it once has. One with
// a TTL is kept alive by its child "touch", as Curator does it, which is set twice per TTL.
//
// Others may change the data: that stays so until SetData, or until the znode is made again.
type Node struct {
	n *persistentnode.Znode
}

// NewNode returns a Node for the znode at path. It does nothing before Start. data is not kept.
func NewNode(c *recipes.Client, path string, data []byte, o NodeOptions) *Node {
	return &Node{persistentnode.New(c, path, data, persistentnode.Options{Mode: o.Mode, TTL: o.TTL, ACL: o.ACL})}
}

// Start begins to keep the znode, on a goroutine, and does not wait for it. It must be followed by Close. Once is enough, and after Close it
// does nothing.
func (n *Node) Start() { n.n.Start() }

// Wait waits until the znode is there, and returns its path. It fails when the server refuses to make it, which is tried again all the
// same; when ctx ends, with ErrTaken too if that is why; and with ErrClosed.
func (n *Node) Wait(ctx context.Context) (path string, err error) { return n.n.Wait(ctx) }

// SetData changes the data, and waits until the znode has them, or newer ones. They are the Node's from now on, even if ctx ends before. Before
// Start it does not wait. data is not kept.
func (n *Node) SetData(ctx context.Context, data []byte) error { return n.n.SetData(ctx, data) }

// Data returns a copy of the Node's data: what was set last.
func (n *Node) Data() []byte { return n.n.Data() }

// There returns the znode's path if it is there, by all that is known, and else "" and why not, if that is known: ErrTaken, ErrClosed, a
// session that is lost, or what the server said.
func (n *Node) There() (path string, err error) { return n.n.Path() }

// Close deletes the znode if it is the Node's, and waits for that. With a TTL it stays until that is over, since others may keep it too. If ctx
// ends before, it goes on in the background until it is done or the Client is closed.
func (n *Node) Close(ctx context.Context) error { return n.n.Close(ctx) }
