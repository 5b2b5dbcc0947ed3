package group

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/persistentnode"
)

var (
	// ErrTaken means that the znode exists and belongs to another session, or is an ephemeral
	// although none was requested.
	ErrTaken = persistentnode.ErrTaken
	// ErrClosed means that the PersistentZnode or its Client was closed.
	ErrClosed = persistentnode.ErrClosed
)

// PersistentZnodeOptions says how to create a znode. The zero value creates a persistent znode with
// the Client's ACL.
type PersistentZnodeOptions struct {
	Mode recipes.Mode
	TTL  time.Duration // for recipes.TTL and recipes.TTLSequential
	ACL  []zk.ACL      // nil means the Client's
}

// PersistentZnode keeps a znode in existence: a znode that was deleted, by somebody or with its
// session, is created again. Safe for concurrent use.
//
//   - If another session has an ephemeral at the path, PersistentZnode waits for its end.
//   - If a znode exists that is not ephemeral, and none was requested, that znode gets the data.
//   - A sequential znode has a GUID before its name, like the protected znodes of Client.Create,
//     and keeps its first name.
//   - A znode with a TTL is kept alive by its child "touch", which is set twice per TTL, as in
//     Curator.
//
// Data that others write stay until SetData, or until the znode is created again.
type PersistentZnode struct {
	znode *persistentnode.Znode
}

// NewPersistentZnode returns a PersistentZnode for path, with a copy of data. Nothing happens
// before Start.
func NewPersistentZnode(c *recipes.Client, path string, data []byte, o PersistentZnodeOptions) *PersistentZnode {
	return &PersistentZnode{persistentnode.New(c, path, data, persistentnode.Options{Mode: o.Mode, TTL: o.TTL, ACL: o.ACL})}
}

// Start begins to keep the znode, in a goroutine that ends with Close, and returns at once. A
// second call does nothing, nor does a call after Close.
func (p *PersistentZnode) Start() { p.znode.Start() }

// Wait waits until the znode exists and returns its path. Wait fails with the server's error if the
// server refuses to create the znode, although the request is retried; with ErrTaken in addition to
// ctx's error if ctx ends while another session has the znode; with ErrClosed; and before Start with
// recipes.ErrNotStarted.
func (p *PersistentZnode) Wait(ctx context.Context) (path string, err error) {
	return p.znode.Wait(ctx)
}

// SetData changes the data and waits until the znode has these or newer data. The data stay set
// even if ctx ends first. Before Start, SetData does not wait. The slice is copied.
func (p *PersistentZnode) SetData(ctx context.Context, data []byte) error {
	return p.znode.SetData(ctx, data)
}

// Data returns a copy of the data that were set last.
func (p *PersistentZnode) Data() []byte { return p.znode.Data() }

// Path returns the znode's path if the znode is known to exist. Otherwise Path returns "" and the
// reason, if known: ErrTaken, ErrClosed, a lost session, or the server's error.
func (p *PersistentZnode) Path() (path string, err error) { return p.znode.Path() }

// Close deletes the znode, unless another session has it, and waits for the deletion. A znode with
// a TTL stays until its TTL is over, because other processes may keep the znode too. If ctx ends
// first, the deletion continues in the background until the Client is closed.
func (p *PersistentZnode) Close(ctx context.Context) error { return p.znode.Close(ctx) }
