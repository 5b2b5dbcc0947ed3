package discovery

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/guid"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/calls"
	"github.com/gozkd/gozkd/recipes/internal/holding"
	"github.com/gozkd/gozkd/recipes/internal/persistentnode"
)

// Register registers an instance and returns when others can find the instance. If the session is
// lost, the instance is registered again as soon as possible, until Close. If Register fails,
// the instance is not registered.
//
// An existing registration of the same service and id, usually from an earlier run of this process,
// is replaced in one step. Another live process waits until this registration is gone; see
// Registration.Path. A Static or Permanent znode gets the new data.
func (d *Discovery[T]) Register(ctx context.Context, in Instance[T]) (*Registration[T], error) {
	in.setDefaults()
	path, err := d.path(in.Name, in.ID)
	if err != nil {
		return nil, err
	}
	data, err := in.encode()
	if err != nil {
		return nil, fmt.Errorf("discovery: register %s: %w", path, err)
	}
	o := recipes.CreateOptions{Ephemeral: in.Type == Dynamic || in.Type == DynamicSequential, Sequential: in.Type == DynamicSequential}
	z := persistentnode.New(d.client, path, data, o)
	if o.Ephemeral {
		z.TakeOver()
	}
	if err := z.Create(ctx); err != nil {
		return nil, err
	}
	return &Registration[T]{client: d.client, znode: z, instance: in}, nil
}

// Registration is an instance that is registered. Safe for concurrent use.
type Registration[T any] struct {
	client *recipes.Client
	znode  *persistentnode.Znode

	mu       sync.Mutex // guards instance, and keeps its changes in the order of the znode's data
	instance Instance[T]
}

// Instance returns the registered instance, including the fields that Register filled in.
func (r *Registration[T]) Instance() Instance[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.instance
}

// Update changes the registered instance, except its service, id and type, and waits until the
// change can be found. The change stays even if ctx ends first.
func (r *Registration[T]) Update(ctx context.Context, in Instance[T]) error {
	wait, err := r.startUpdate(in)
	if err != nil {
		return err
	}
	return wait(ctx)
}

func (r *Registration[T]) startUpdate(in Instance[T]) (wait func(ctx context.Context) error, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in.Name, in.ID, in.Type = r.instance.Name, r.instance.ID, r.instance.Type
	if in.Registered.IsZero() {
		in.Registered = r.instance.Registered
	}
	data, err := in.encode()
	if err != nil {
		return nil, fmt.Errorf("discovery: update %s/%s: %w", in.Name, in.ID, err)
	}
	r.instance = in
	return r.znode.StartSetData(data), nil
}

// Path returns the path of the instance's znode if the znode is known to exist. Otherwise Path
// returns "" and the reason, if known: ErrTaken, ErrClosed, a lost session, or the server's error.
func (r *Registration[T]) Path() (path string, err error) { return r.znode.Path() }

// Wait waits until the instance is registered, for example again after the loss of the session.
// The errors are those of group.PersistentZnode.Wait.
func (r *Registration[T]) Wait(ctx context.Context) (path string, err error) {
	return r.znode.Wait(ctx)
}

// Close ends the registration and waits until the znode is gone. After the session timeout Close
// returns recipes.ErrOutcomeUnknown, and the deletion continues in the background until the Client
// is closed.
func (r *Registration[T]) Close() error { return calls.Close(r.client, r.znode.Close) }

// With registers, runs f, and unregisters, also if f panics. f gets ctx itself: a registration is
// restored automatically, so its loss is no reason to stop f. With waits for the deletion of the
// znode even if ctx has ended; see Registration.Close.
func (d *Discovery[T]) With(ctx context.Context, in Instance[T], f func(ctx context.Context) error) error {
	return holding.While(ctx, func() (*Registration[T], error) { return d.Register(ctx, in) }, f)
}

func (in *Instance[T]) setDefaults() {
	in.ID = cmp.Or(in.ID, guid.New())
	if in.Registered.IsZero() {
		in.Registered = time.Now()
	}
	in.Registered = in.Registered.Truncate(time.Millisecond)
	in.Type = in.Type.orDynamic()
}
