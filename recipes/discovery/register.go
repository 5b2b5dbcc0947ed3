package discovery

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/persistentnode"
)

var (
	// ErrTaken means that another session has registered under the same service and id.
	ErrTaken = persistentnode.ErrTaken
	// ErrClosed means that it was unregistered, or that the Client was closed.
	ErrClosed = persistentnode.ErrClosed
)

// Register registers an instance, and returns when it can be found. Whatever happens to the session, it is registered again as soon as it can
// be, until Unregister. When it fails, or ctx ends, it is not.
//
// One of the same service and id that is there already is replaced, in one step: as a rule it is from an earlier life of this process. If
// it is from another that lives, it waits until this one is gone; see Registration.There. One that is Static or Permanent gets the data.
func (d *Discovery[T]) Register(ctx context.Context, in Instance[T]) (*Registration[T], error) {
	in.complete()
	path, err := d.path(in.Name, in.ID)
	if err != nil {
		return nil, err
	}
	data, err := in.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("discovery: register %s: %w", path, err)
	}
	n := persistentnode.New(d.client, path, data, persistentnode.Options{Mode: in.Type.mode(), TakeOver: in.Type.dynamic()})
	n.Start()
	if _, err := n.Wait(ctx); err != nil {
		_ = n.Close(ctx) // why it could not be registered says more
		return nil, err
	}
	return &Registration[T]{n: n, instance: in}, nil
}

// Registration is an instance that is registered. Safe for concurrent use.
type Registration[T any] struct {
	n *persistentnode.Znode

	mu       sync.Mutex // guards instance, and that its changes and those of the data come in the same order
	instance Instance[T]
}

// Instance returns what is registered, with what Register has completed.
func (r *Registration[T]) Instance() Instance[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.instance
}

// Update changes what is registered, but for the service, the id and the type, and waits until it can be found. It is what is registered from
// now on, even if ctx ends before.
func (r *Registration[T]) Update(ctx context.Context, in Instance[T]) error {
	wait, err := r.put(in)
	if err != nil {
		return err
	}
	return wait(ctx)
}

func (r *Registration[T]) put(in Instance[T]) (wait func(ctx context.Context) error, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in.Name, in.ID, in.Type = r.instance.Name, r.instance.ID, r.instance.Type
	if in.Registered.IsZero() {
		in.Registered = r.instance.Registered
	}
	data, err := in.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("discovery: update %s/%s: %w", in.Name, in.ID, err)
	}
	r.instance = in
	return r.n.StartSetData(data), nil
}

// There returns the path of the instance's znode, if it is there by all that is known. Else it returns "", and why not if that is known: ErrTaken
// if another has registered under its id, ErrClosed, a session that is lost, or what the server said.
func (r *Registration[T]) There() (path string, err error) { return r.n.Path() }

// Wait waits until it is registered; it is when Register returns, and may be not after the loss of the session. It fails when the server
// refuses to make the znode, which is tried again all the same; when ctx ends, with ErrTaken too if that is why; and with ErrClosed.
func (r *Registration[T]) Wait(ctx context.Context) (path string, err error) { return r.n.Wait(ctx) }

// Unregister ends the registration, and waits until it cannot be found any more. If ctx ends before, it goes on in the background, until it is
// done or the Client is closed.
func (r *Registration[T]) Unregister(ctx context.Context) error { return r.n.Close(ctx) }

// With is Register, f, and Unregister, also if f panics. f gets ctx: a registration comes back by itself, so there is no loss that f should
// learn of.
func (d *Discovery[T]) With(ctx context.Context, in Instance[T], f func(ctx context.Context) error) (err error) {
	r, err := d.Register(ctx, in)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Unregister(ctx)) }()
	return f(ctx)
}

// complete fills in what Register does.
func (in *Instance[T]) complete() {
	if in.ID == "" {
		in.ID = uuid()
	}
	if in.Registered.IsZero() {
		in.Registered = time.Now()
	}
	in.Registered = in.Registered.Truncate(time.Millisecond)
	in.Type = in.Type.orDynamic()
}

func (t ServiceType) mode() recipes.Mode {
	switch t {
	case Dynamic, "":
		return recipes.Ephemeral
	case DynamicSequential:
		return recipes.EphemeralSequential
	}
	return recipes.Persistent
}

// uuid returns a random one as Java writes it.
func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
