package agree

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// Rendezvous lets those meet who know nothing of each other but a path: who comes first is the host, and says where it is; who comes later
// learns that. When the host has gone, whoever meets next is host. Safe for concurrent use.
type Rendezvous struct {
	client *recipes.Client
	path   string
}

// Meeting is one's part in a meeting. Leave must be called.
type Meeting struct {
	client  *recipes.Client
	path    string // of the host's znode
	address []byte
	host    *recipes.Hold // nil for a guest
	ctx     context.Context
	leave   context.CancelCauseFunc
	done    chan struct{} // closed when nothing of it runs
}

// ErrHostGone is the cause of the end of a guest's context.
var ErrHostGone = errors.New("agree: the host is gone")

// NewRendezvous returns the rendezvous at path.
func NewRendezvous(c *recipes.Client, path string) *Rendezvous {
	return &Rendezvous{client: c, path: path}
}

// Meet meets the host that is there, or becomes the host, whose address guests get.
func (r *Rendezvous) Meet(ctx context.Context, address []byte) (*Meeting, error) {
	for {
		m, err := r.visit(ctx)
		if m != nil || err != nil {
			return m, err
		}
		held, err := contend.TryAcquire(ctx, r.client, r.path, "host-", address, contend.Exclusive)
		switch {
		case held != nil:
			return &Meeting{client: r.client, path: held.Path(), address: address, host: held, ctx: held.Context()}, nil
		case err == nil: // another was faster: it is there
		case ctx.Err() != nil || !errors.Is(err, recipes.ErrSessionLost) && !errors.Is(err, recipes.ErrNotHeld):
			return nil, err
		}
	}
}

// Visit waits for a host and meets it, and is never the host.
func (r *Rendezvous) Visit(ctx context.Context) (*Meeting, error) {
	for {
		names, fires, err := r.watch(ctx)
		if err != nil {
			return nil, err
		}
		if len(names) > 0 {
			if m, err := r.guest(ctx, names[0]); m != nil || err != nil {
				return m, err
			}
			continue
		}
		if err := wait(ctx, "wait for a host at", r.path, fires); err != nil {
			return nil, err
		}
	}
}

// Host reports whether one is the host oneself.
func (m *Meeting) Host() bool { return m.host != nil }

// Held is what a host has for the fact that it is the host; nil for a guest.
func (m *Meeting) Held() *recipes.Hold { return m.host }

// Address is the host's. It is not to be changed.
func (m *Meeting) Address() []byte { return m.address }

// Context of a host ends when it is not the host any more, before another can be; that of a guest when it has heard that its host is gone, or
// does not know whether it could hear that.
func (m *Meeting) Context() context.Context { return m.ctx }

// Leave ends it. When a host leaves, the meeting is over for all.
func (m *Meeting) Leave(ctx context.Context) error {
	if m.host != nil {
		return m.host.Release(ctx)
	}
	m.leave(context.Canceled)
	<-m.done
	return nil
}

// visit meets the host that is there; nil if there is none.
func (r *Rendezvous) visit(ctx context.Context) (*Meeting, error) {
	children, _, err := r.client.Children(ctx, r.path)
	switch names := recipes.Sequential(children); {
	case errors.Is(err, zk.ErrNoNode), err == nil && len(names) == 0:
		return nil, nil
	case err != nil:
		return nil, err
	default:
		return r.guest(ctx, names[0])
	}
}

// watch returns who is there, and a channel that says when that has changed.
func (r *Rendezvous) watch(ctx context.Context) ([]string, <-chan zk.Event, error) {
	for {
		children, _, fires, err := r.client.ChildrenW(ctx, r.path)
		if !errors.Is(err, zk.ErrNoNode) {
			return recipes.Sequential(children), fires, err
		}
		stat, fires, err := r.client.ExistsW(ctx, r.path)
		if stat == nil { // else it was made meanwhile
			return nil, fires, err
		}
	}
}

// guest meets the host with that name; nil if it is gone.
func (r *Rendezvous) guest(ctx context.Context, name string) (*Meeting, error) {
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
	m := &Meeting{client: r.client, path: path, address: data, done: make(chan struct{})}
	m.ctx, m.leave = s.WithCancel()
	// Ends with Leave, which waits for it, or when the host or the session is gone.
	go m.follow(fires)
	return m, nil
}

// follow ends the meeting when the host is gone.
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
			m.leave(ErrHostGone) // or it can't be known whether it is there
			return
		}
	}
}
