package discovery

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// ErrNoInstance means that there is no instance, or none that may be used now.
var ErrNoInstance = errors.New("discovery: no instance")

// Discovery is the set of services below a base path. An instance is at base/<service>/<id>. T is
// the type of the instances' payloads. Safe for concurrent use.
type Discovery[T any] struct {
	client *recipes.Client
	base   string
}

// New returns the Discovery at base.
func New[T any](c *recipes.Client, base string) *Discovery[T] { return &Discovery[T]{c, base} }

// Names returns the names of the services that have instances, or had some recently, sorted.
func (d *Discovery[T]) Names(ctx context.Context) ([]string, error) {
	names, err := contend.ChildNames(ctx, d.client, d.base)
	return sortedNames(names), err
}

func sortedNames(names []string) []string {
	slices.Sort(names)
	return names
}

// Instances asks the server for the instances of a service, in the order of their znodes' names.
// Znodes that are not instances are left out, and an error that wraps recipes.ErrFormat names them.
// With any other error there are no instances.
func (d *Discovery[T]) Instances(ctx context.Context, name string) ([]Instance[T], error) {
	found, err := contend.Contenders(ctx, d.client, znodepath.Join(d.base, name), sortedNames)
	if err != nil {
		return nil, err
	}
	all := make([]Instance[T], 0, len(found))
	var errs []error
	for _, f := range found {
		in, err := parse[T](f.Path, f.Data)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, in)
	}
	return all, errors.Join(errs...)
}

// Instance asks the server for an instance. If there is no such instance, the error is
// ErrNoInstance. A DynamicSequential instance cannot be found by its id, which differs from its
// znode's name: use Instances.
func (d *Discovery[T]) Instance(ctx context.Context, name, id string) (Instance[T], error) {
	path, err := d.path(name, id)
	if err != nil {
		return Instance[T]{}, err
	}
	data, _, err := d.client.Get(ctx, path)
	switch {
	case errors.Is(err, proto.ErrNoNode):
		return Instance[T]{}, fmt.Errorf("%w %s", ErrNoInstance, path)
	case err != nil:
		return Instance[T]{}, err
	}
	return parse[T](path, data)
}

func (d *Discovery[T]) path(name, id string) (string, error) {
	if !znodepath.ValidName(name) || !znodepath.ValidName(id) {
		return "", fmt.Errorf("discovery: service %q, id %q: not valid names of znodes: %w", name, id, proto.ErrBadArguments)
	}
	return znodepath.Join(znodepath.Join(d.base, name), id), nil
}

// parse decodes a znode's data. JSON without a name or an id, such as null, is not an instance.
func parse[T any](path string, data []byte) (Instance[T], error) {
	in, err := fromJSON[T](data)
	if err == nil && (in.Name == "" || in.ID == "") {
		err = errors.New("the name or the id is missing")
	}
	if err != nil {
		return in, fmt.Errorf("discovery: %s is not an instance: %w: %w", path, recipes.ErrFormat, err)
	}
	return in, nil
}
