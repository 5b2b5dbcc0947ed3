// Package persistentnode keeps a znode in existence: until closed, a Znode creates its znode, and
// creates it again whenever the znode is gone. Packages group and discovery use this package.
//
// Invariants:
//   - K1 Until Close, and unless another session has the znode, it exists again after every
//     failure, with the data that were set last. Data that another client writes stay until data
//     are set, or the znode is created, again.
//   - K2 At most one session has the znode: an ephemeral of another session is waited for, not
//     written, and not deleted by Close, with the exception below.
//   - K3 When Close has returned nil, the znode is gone.
//   - K4 TakeOver replaces a znode at most once, so two owners of a name settle: the later
//     has the znode, the other waits.
//
// The exception to K2: a Znode checks that its session is alive and connected before it sends a
// write or a delete, but the server cannot check whose znode it is. The request reaches another
// session's znode if
//   - a wrapped connection breaks between the check and the sending, and the session ends before
//     the Client is connected again: the request is then sent in the next session; or
//   - a third client deletes the znode, and the other session creates its own, while the request is
//     on its way. A takeover does not have this effect.
//
// A delete then deletes the znode, and its owner creates it again. A write replaces the data if the
// two znodes have the same version; like all data of other clients, they stay as K1 says.
package persistentnode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gozkd/gozkd/internal/wakeup"
	"github.com/gozkd/gozkd/recipes"
)

// Znode is a znode that is kept in existence. When the session ends, an ephemeral is created again
// in the next session. Safe for concurrent use.
type Znode struct {
	client        *recipes.Client
	opts          recipes.CreateOptions
	takeOver      bool // see TakeOver
	requestedPath string
	wake          chan struct{} // there are new data to write; capacity 1

	mu              sync.Mutex // guards the fields below; never held while waiting
	stop            context.CancelFunc
	done            chan struct{}    // non-nil after Start; closed when run has ended
	changed         wakeup.Broadcast // sent at each change of these fields
	data            []byte
	revision        int // counts StartSetData
	writtenRevision int // the latest revision that was written; -1 if unknown
	path            string
	// the session in which the znode was seen; nil if it is missing
	presentIn *recipes.Session
	lastErr   error // why the znode is missing or has old data
	closing   bool
	result    error // of Close
}

// New returns a Znode that Start will create, with a copy of data.
func New(c *recipes.Client, path string, data []byte, o recipes.CreateOptions) *Znode {
	n := &Znode{client: c, opts: o, requestedPath: path, data: bytes.Clone(data), wake: make(chan struct{}, 1)}
	if !o.Sequential {
		n.path = path
	}
	return n
}

// TakeOver makes n replace an ephemeral that another session has, in one multi, until the znode has
// existed once. TakeOver must be called before Start, and returns n.
func (n *Znode) TakeOver() *Znode {
	n.takeOver = true
	return n
}

// Create starts n until Close, and waits until the znode exists. If Create fails, n is closed.
func (n *Znode) Create(ctx context.Context) error {
	err := n.Start(context.Background())
	if err == nil {
		_, err = n.Wait(ctx)
	}
	if err != nil {
		_ = n.Close(ctx) // err says more
	}
	return err
}

// Start begins to keep the znode until ctx ends or Close, and returns. A second call does nothing.
func (n *Znode) Start(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closing {
		return n.wrapErr(recipes.ErrClosed)
	}
	if n.done == nil {
		n.done = make(chan struct{})
		ctx, n.stop = context.WithCancel(ctx)
		// Ends when ctx has ended and the znode is deleted, or when the Client is closed. Close
		// waits until Close's own ctx ends.
		go n.run(ctx)
	}
	return nil
}

// Wait is group.PersistentZnode.Wait.
func (n *Znode) Wait(ctx context.Context) (string, error) {
	n.mu.Lock()
	idle := n.done == nil && !n.closing
	n.mu.Unlock()
	if idle {
		return "", &recipes.Error{Op: "wait for", Path: n.requestedPath, Err: recipes.ErrNotStarted}
	}
	var path string
	err := n.await(ctx, func() bool {
		path = n.path
		return n.isPresent()
	})
	if err != nil {
		return "", err
	}
	return path, nil
}

// SetData sets the data and waits until the znode has these or newer data.
func (n *Znode) SetData(ctx context.Context, data []byte) error { return n.StartSetData(data)(ctx) }

// StartSetData sets the data at once. wait waits until the znode has these or newer data; before
// Start, wait does nothing.
func (n *Znode) StartSetData(data []byte) (wait func(ctx context.Context) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closing {
		return func(context.Context) error { return n.wrapErr(recipes.ErrClosed) }
	}
	n.data = bytes.Clone(data)
	n.revision++
	revision := n.revision
	if n.done == nil {
		return func(context.Context) error { return nil }
	}
	if !errors.Is(n.lastErr, recipes.ErrTaken) { // the refusal may have been due to the old data
		n.lastErr = nil
	}
	wakeup.Send(n.wake)
	return func(ctx context.Context) error {
		return n.await(ctx, func() bool { return n.isPresent() && n.writtenRevision >= revision })
	}
}

// Path returns the path of the znode if it exists, and otherwise why it does not.
func (n *Znode) Path() (path string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.isPresent():
		return n.path, nil
	case n.closing:
		return "", n.wrapErr(recipes.ErrClosed)
	}
	return "", n.lastErr
}

// Close deletes the znode unless another session has it. A znode with a TTL stays until its TTL is
// over. If ctx ends first, the deletion continues in the background until the Client is closed.
func (n *Znode) Close(ctx context.Context) error {
	n.mu.Lock()
	n.closing = true
	done := n.done
	if done == nil {
		n.mu.Unlock()
		return nil
	}
	n.stop()
	n.mu.Unlock()
	select {
	case <-done:
	case <-ctx.Done():
		if !wakeup.Fired(done) {
			return &recipes.Error{Op: "close", Path: n.requestedPath, Err: context.Cause(ctx), Unknown: true}
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.opts.Ephemeral && errors.Is(n.result, recipes.ErrClosed) {
		return nil // the znode ended with its session
	}
	return n.result
}

// await waits until cond, which is called with mu held, returns true.
func (n *Znode) await(ctx context.Context, cond func() bool) error {
	for {
		n.mu.Lock()
		met, closing, lastErr, changed := cond(), n.closing, n.lastErr, n.changed.Next()
		n.mu.Unlock()
		switch {
		case closing:
			return n.wrapErr(recipes.ErrClosed)
		case met:
			return nil
		case recipes.Refused(lastErr):
			return lastErr
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if lastErr != nil {
				return fmt.Errorf("keep %s: %w: %w", n.requestedPath, context.Cause(ctx), lastErr)
			}
			return n.wrapErr(context.Cause(ctx))
		}
	}
}

func (n *Znode) wrapErr(err error) error { return fmt.Errorf("keep %s: %w", n.requestedPath, err) }

// isPresent must be called with mu held.
func (n *Znode) isPresent() bool {
	return n.presentIn != nil && (!n.opts.Ephemeral || n.presentIn.Context().Err() == nil)
}

// update changes fields under mu and wakes all callers of await.
func (n *Znode) update(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
	n.changed.Send()
}
