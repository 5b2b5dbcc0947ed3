package group

import (
	"context"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/calls"
	"github.com/gozkd/gozkd/recipes/internal/persistentnode"
)

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
	client *recipes.Client
	znode  *persistentnode.Znode
}

// NewPersistentZnode returns a PersistentZnode for path, with a copy of data. Nothing happens
// before Start. Of the options, Parents and Protected make no difference.
func NewPersistentZnode(c *recipes.Client, path string, data []byte, o recipes.CreateOptions) *PersistentZnode {
	return &PersistentZnode{c, persistentnode.New(c, path, data, o)}
}

// Start begins to keep the znode, until ctx ends or Close, and returns at once. A second call does
// nothing; after Close the error is recipes.ErrClosed. After the end of ctx the znode is deleted in
// the background; Close waits for that. If the Client is closed first, a znode that is not
// ephemeral stays.
func (p *PersistentZnode) Start(ctx context.Context) error { return p.znode.Start(ctx) }

// Wait waits until the znode exists and returns its path. Wait fails with the server's error if the
// server refuses to create the znode, although the request is retried; with recipes.ErrTaken in
// addition to ctx's error if ctx ends while another session has the znode; with recipes.ErrClosed;
// and before Start with recipes.ErrNotStarted.
func (p *PersistentZnode) Wait(ctx context.Context) (path string, err error) {
	return p.znode.Wait(ctx)
}

// SetData changes the data and waits until the znode has these or newer data. The data stay set
// even if ctx ends first. Before Start, SetData does not wait. The slice is copied.
func (p *PersistentZnode) SetData(ctx context.Context, data []byte) error {
	return p.znode.SetData(ctx, data)
}

// Path returns the znode's path if the znode is known to exist. Otherwise Path returns "" and the
// reason, if known: recipes.ErrTaken, recipes.ErrClosed, a lost session, or the server's error.
func (p *PersistentZnode) Path() (path string, err error) { return p.znode.Path() }

// Close deletes the znode, unless another session has it, and waits for the deletion. A znode with
// a TTL stays until its TTL is over, because other processes may keep the znode too. After the
// session timeout Close returns recipes.ErrOutcomeUnknown, and the deletion continues in the
// background until the Client is closed.
func (p *PersistentZnode) Close() error { return calls.Close(p.client, p.znode.Close) }
