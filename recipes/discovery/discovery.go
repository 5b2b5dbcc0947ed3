package discovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

var (
	// ErrMalformed means that a znode's data are no instance.
	ErrMalformed = errors.New("discovery: not an instance")
	// ErrNoInstance means that there is no instance, or that none may be given out now.
	ErrNoInstance = errors.New("discovery: no instance")
)

// Discovery is the services below a base path: base/<service>/<id>. T is the payload of their instances. Safe for concurrent use.
type Discovery[T any] struct {
	client *recipes.Client
	base   string
}

// New returns the Discovery at base.
func New[T any](c *recipes.Client, base string) *Discovery[T] { return &Discovery[T]{c, base} }

// Names returns the names of the services that have, or lately had, instances, in alphabetical order.
func (d *Discovery[T]) Names(ctx context.Context) ([]string, error) {
	names, err := d.children(ctx, d.base)
	slices.Sort(names)
	return names, err
}

// Instances asks for the instances of a service, in the order of their znodes' names. What is no instance is left out, and the error says
// which, with ErrMalformed; with any other error there are none.
func (d *Discovery[T]) Instances(ctx context.Context, name string) ([]Instance[T], error) {
	registered, err := d.Explain(ctx, name)
	all := make([]Instance[T], len(registered))
	for i, r := range registered {
		all[i] = r.Instance
	}
	return all, err
}

// Instance asks for one instance. It fails with ErrNoInstance if it is not registered. One of DynamicSequential has another name than its id: for
// these ask for Instances.
func (d *Discovery[T]) Instance(ctx context.Context, name, id string) (Instance[T], error) {
	path, err := d.path(name, id)
	if err != nil {
		return Instance[T]{}, err
	}
	data, _, err := d.client.Get(ctx, path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return Instance[T]{}, fmt.Errorf("%w %s", ErrNoInstance, path)
	case err != nil:
		return Instance[T]{}, err
	}
	return parse[T](path, data)
}

// Registered is an instance as it is registered.
type Registered[T any] struct {
	Instance Instance[T]
	recipes.Contender
}

// Explain says who is registered for a service, by which session and since when: that is since it was registered last, as after the loss of a
// session. It is Instances with more to tell.
func (d *Discovery[T]) Explain(ctx context.Context, name string) ([]Registered[T], error) {
	dir := znodepath.Join(d.base, name)
	ids, err := d.children(ctx, dir)
	if err != nil {
		return nil, err
	}
	slices.Sort(ids)
	paths := make([]string, len(ids))
	for i, id := range ids {
		paths[i] = znodepath.Join(dir, id)
	}
	found, err := contend.Read(ctx, d.client, paths)
	if err != nil {
		return nil, err
	}
	all := make([]Registered[T], 0, len(found))
	var errs []error
	for _, f := range found {
		in, err := parse[T](f.Path, f.Data)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, Registered[T]{in, f})
	}
	return all, errors.Join(errs...)
}

// children returns the names of a znode's children, none if it is not there.
func (d *Discovery[T]) children(ctx context.Context, path string) ([]string, error) {
	names, _, err := d.client.Children(ctx, path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	return names, err
}

// path returns that of an instance.
func (d *Discovery[T]) path(name, id string) (string, error) {
	for _, s := range []string{name, id} {
		if s == "" || s == "." || s == ".." || strings.Contains(s, "/") {
			return "", fmt.Errorf("discovery: service %q, id %q: both are names of znodes: %w", name, id, zk.ErrInvalidPath)
		}
	}
	return znodepath.Join(znodepath.Join(d.base, name), id), nil
}

// parse reads a znode. Whoever registers has a name and an id; JSON without them, as null is, was not meant for an instance.
func parse[T any](path string, data []byte) (in Instance[T], err error) {
	if err := in.UnmarshalJSON(data); err != nil {
		return in, fmt.Errorf("%w: %s: %w", ErrMalformed, path, err)
	}
	if in.Name == "" || in.ID == "" {
		return in, fmt.Errorf("%w: %s: it has no name or no id", ErrMalformed, path)
	}
	return in, nil
}
