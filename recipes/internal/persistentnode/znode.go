// Package persistentnode keeps a znode: it makes it, and makes it again when it is gone, until it is closed. What stands on it is package group and
// package discovery, which say what that is good for.
//
// Invariants:
//   - K1 while it is kept and not taken, the znode is there again after every trouble, with the data that were set last;
//   - K2 there is one of it: an ephemeral that another session has is waited for, and never written, nor deleted by Close;
//   - K3 when Close has returned nil, the znode is gone;
//   - K4 who takes over does so once, so that two who want one name come to rest: who came last has it, and the other waits.
package persistentnode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
)

var (
	// ErrTaken means that the znode is there, and is another session's.
	ErrTaken = errors.New("taken by another session")
	// ErrClosed means that it is kept no more.
	ErrClosed = errors.New("closed")
)

// Options is how a znode is made.
type Options struct {
	Mode recipes.Mode
	TTL  time.Duration // of the modes that have one
	ACL  []zk.ACL      // nil: the Client's
	// TakeOver replaces an ephemeral that another session has when this one begins, in one step. Only until it has been there once.
	TakeOver bool
}

func (o Options) ephemeral() bool {
	return o.Mode == recipes.Ephemeral || o.Mode == recipes.EphemeralSequential
}

func (o Options) ttl() bool { return o.Mode == recipes.TTL || o.Mode == recipes.TTLSequential }

func (o Options) sequential() bool {
	return o.Mode == recipes.EphemeralSequential || o.Mode == recipes.PersistentSequential || o.Mode == recipes.TTLSequential
}

// named is how it is made when it has its name, with its number if it is sequential.
func (o Options) namedMode() recipes.Mode {
	switch o.Mode {
	case recipes.EphemeralSequential:
		return recipes.Ephemeral
	case recipes.PersistentSequential:
		return recipes.Persistent
	case recipes.TTLSequential:
		return recipes.TTL
	}
	return o.Mode
}

// Node is a znode that is kept. Safe for concurrent use.
type Znode struct {
	client        *recipes.Client
	opts          Options
	requestedPath string
	wake          chan struct{} // there are other data; holds one

	mu              sync.Mutex // guards what follows; nothing waits while it is held
	stop            context.CancelFunc
	done            chan struct{} // non-nil from Start on, closed when nothing goes on any more
	changed         chan struct{} // closed and replaced when any of these changes
	data            []byte
	revision        int // counts SetData
	writtenRevision int // the last of them that the znode has, or has had
	path            string
	presentIn       *recipes.Session // in which it was seen
	lastErr         error            // why it is not there, or has not the data
	closing         bool
	closed          bool
	result          error // of Close
}

// New returns a Node that is not kept yet. It makes a copy of data, as SetData does.
func New(c *recipes.Client, path string, data []byte, o Options) *Znode {
	n := &Znode{client: c, opts: o, requestedPath: path, data: bytes.Clone(data), wake: make(chan struct{}, 1), changed: make(chan struct{})}
	if !o.sequential() {
		n.path = path
	}
	return n
}

// Start begins to keep it. It does not wait. Once is enough, and after Close it does nothing.
func (n *Znode) Start() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.done != nil || n.closing {
		return
	}
	n.done = make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	n.stop = cancel
	// Ends when Close has ended ctx and the znode is deleted, or when the Client is closed; Close waits for it as long as its own ctx lets it.
	go n.run(ctx)
}

// Wait waits until the znode is there, and returns its path. It fails when the server refuses to make it, with what it said, while it is
// tried again all the same; when ctx ends, with ErrTaken too if that is why; and with ErrClosed.
func (n *Znode) Wait(ctx context.Context) (string, error) {
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

// SetData changes the data, and waits until the znode has them, or newer ones. They are those of the znode from now on even if it is not
// there, or ctx ends before it has them. Before Start it does not wait.
func (n *Znode) SetData(ctx context.Context, data []byte) error { return n.StartSetData(data)(ctx) }

// Put is SetData in two steps: it changes the data, and what it returns waits.
func (n *Znode) StartSetData(data []byte) (wait func(ctx context.Context) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closing {
		return func(context.Context) error { return n.wrapErr(ErrClosed) }
	}
	n.data = bytes.Clone(data)
	n.revision++
	mine := n.revision
	if n.done == nil {
		return func(context.Context) error { return nil }
	}
	if !errors.Is(n.lastErr, ErrTaken) { // what was refused may have been refused for the data
		n.lastErr = nil
	}
	select {
	case n.wake <- struct{}{}:
	default:
	}
	return func(ctx context.Context) error {
		return n.await(ctx, func() bool { return n.isPresent() && n.writtenRevision >= mine })
	}
}

// Data returns what was set last.
func (n *Znode) Data() []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	return bytes.Clone(n.data)
}

// There returns the znode's path, if it is there, or why it is not.
func (n *Znode) Path() (path string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.closed:
		return "", n.wrapErr(ErrClosed)
	case n.isPresent():
		return n.path, nil
	}
	return "", n.lastErr
}

// Close deletes the znode, if it is its own; of the modes with a TTL it stays until that is over. If ctx ends before that is done, it goes
// on in the background, until it is done or the Client is closed.
func (n *Znode) Close(ctx context.Context) error {
	n.mu.Lock()
	n.closing = true
	done := n.done
	if done == nil {
		n.closed = true
		n.mu.Unlock()
		return nil
	}
	n.stop()
	n.mu.Unlock()
	select {
	case <-done: // if ctx has ended too, that is the better news
	default:
		select {
		case <-done:
		case <-ctx.Done():
			return n.wrapErr(context.Cause(ctx))
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.result
}

// await waits until cond, which is called with mu held, is true.
func (n *Znode) await(ctx context.Context, cond func() bool) error {
	for {
		n.mu.Lock()
		met, closed, problem, changed := cond(), n.closing || n.closed, n.lastErr, n.changed
		n.mu.Unlock()
		var refused *recipes.Error
		switch {
		case closed:
			return n.wrapErr(ErrClosed)
		case met:
			return nil
		case errors.As(problem, &refused) && refused.Refused():
			return problem
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if problem != nil {
				return fmt.Errorf("keep %s: %w: %w", n.requestedPath, context.Cause(ctx), problem)
			}
			return n.wrapErr(context.Cause(ctx))
		}
	}
}

func (n *Znode) wrapErr(err error) error { return fmt.Errorf("keep %s: %w", n.requestedPath, err) }

// isThere needs mu.
func (n *Znode) isPresent() bool {
	return n.presentIn != nil && (!n.opts.ephemeral() || n.presentIn.Context().Err() == nil)
}

// change changes the state.
func (n *Znode) update(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
	close(n.changed)
	n.changed = make(chan struct{})
}
