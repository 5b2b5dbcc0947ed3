package agree

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/sequence"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/checkedctx"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// Rendezvous lets processes meet that know nothing of each other except a path. The first is the
// host and publishes its address; the others are guests and get that address. After the host has
// gone, the next participant is the host. Safe for concurrent use.
type Rendezvous struct {
	client *recipes.Client
	path   string
}

// Meeting is the participation in a rendezvous, as host or as guest. Close must be called.
type Meeting struct {
	Address []byte        // the host's; must not be modified
	Held    *recipes.Hold // of the host; nil for a guest
	client  *recipes.Client
	path    string // of the host's znode
	ctx     context.Context
	cancel  context.CancelCauseFunc // nil for a host
	done    chan struct{}           // closed when follow has ended; nil for a host
}

// Explain returns the host. Waiters came at the same moment and will be guests.
func (r *Rendezvous) Explain(ctx context.Context) (recipes.Contention, error) {
	return contend.Contention(ctx, r.client, r.path, nil)
}

// NewRendezvous returns the rendezvous at path.
func NewRendezvous(c *recipes.Client, path string) *Rendezvous {
	return &Rendezvous{client: c, path: path}
}

// Meet meets the present host, or becomes the host, whose guests get address.
func (r *Rendezvous) Meet(ctx context.Context, address []byte) (*Meeting, error) {
	for {
		children, err := contend.ChildNames(ctx, r.client, r.path)
		if err != nil {
			return nil, err
		}
		if names := sequence.Sequential(children); len(names) > 0 {
			if m, err := r.meetAsGuest(ctx, names[0]); m != nil || err != nil {
				return m, err
			}
		}
		held, err := contend.TryAcquire(ctx, r.client, r.path, "host-", address, contend.Exclusive)
		switch {
		case held != nil:
			return &Meeting{client: r.client, path: held.Path(), Address: address, Held: held, ctx: held.Context()}, nil
		case err == nil: // another process was faster and is the host
		case ctx.Err() != nil || !contend.IsLost(err):
			return nil, err
		}
	}
}

// Visit waits for a host and meets that host, and never becomes the host.
func (r *Rendezvous) Visit(ctx context.Context) (*Meeting, error) {
	for {
		names, fires, err := r.watch(ctx)
		if err != nil {
			return nil, err
		}
		if len(names) > 0 {
			if m, err := r.meetAsGuest(ctx, names[0]); m != nil || err != nil {
				return m, err
			}
			continue
		}
		if err := contend.Await(ctx, "wait for a host at", r.path, fires); err != nil {
			return nil, err
		}
	}
}

// Context returns a context that ends with the meeting. A host's context ends before another
// process can be the host. A guest's context ends when the guest has learned that the host is gone,
// or can no longer learn that; its cause wraps recipes.ErrNotHeld.
func (m *Meeting) Context() context.Context { return m.ctx }

// Close ends the participation. When the host leaves, the meeting is over for all.
func (m *Meeting) Close() error {
	if m.Held != nil {
		return contend.Close(m.client, m.Held.Release)
	}
	m.cancel(context.Canceled)
	<-m.done
	return nil
}

// watch returns the names of the host and of other contenders in order, and a channel that says
// when they have changed.
func (r *Rendezvous) watch(ctx context.Context) ([]string, <-chan zk.Event, error) {
	for {
		children, _, fires, err := r.client.ChildrenW(ctx, r.path)
		if !errors.Is(err, zk.ErrNoNode) {
			return sequence.Sequential(children), fires, err
		}
		stat, fires, err := r.client.ExistsW(ctx, r.path)
		if stat == nil { // otherwise created meanwhile
			return nil, fires, err
		}
	}
}

// meetAsGuest meets the host whose znode is called name, nil if that is gone.
func (r *Rendezvous) meetAsGuest(ctx context.Context, name string) (*Meeting, error) {
	s, err := r.client.AwaitSession(ctx)
	if err != nil {
		return nil, err
	}
	in, cancel := s.Within(ctx)
	defer cancel()
	path := znodepath.Join(r.path, name)
	data, _, fires, err := r.client.GetW(in, path)
	switch {
	case errors.Is(err, zk.ErrNoNode), ctx.Err() == nil && errors.Is(err, recipes.ErrSessionLost):
		return nil, nil
	case err != nil:
		return nil, err
	}
	m := &Meeting{client: r.client, path: path, Address: data, done: make(chan struct{})}
	m.ctx, m.cancel = checkedctx.WithCancel(s.Context())
	// Ends with Close, which waits, or when the host or the session is gone.
	go m.follow(fires)
	return m, nil
}

var errHostGone = fmt.Errorf("agree: the host is gone: %w", recipes.ErrNotHeld)

// follow ends a guest's meeting when the host is gone.
func (m *Meeting) follow(fires <-chan zk.Event) {
	defer close(m.done)
	for {
		select {
		case <-fires:
		case <-m.ctx.Done():
			return
		}
		var err error
		if _, _, fires, err = m.client.GetW(m.ctx, m.path); err != nil {
			m.cancel(errHostGone) // or the guest cannot know whether the host is gone
			return
		}
	}
}
