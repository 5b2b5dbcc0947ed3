package shared

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/exactlyonce"
)

// Value is bytes at a znode that many change. The znode is made by the first change. Safe for concurrent use; one Value changes one thing
// after the other.
//
// Its first change makes an ephemeral child of the znode, by which a change finds out what became of it when the answer is lost. Close
// deletes it.
type Value struct {
	client *recipes.Client
	path   string
	cfg    config
	writer *exactlyonce.Writer
}

// NewValue returns the value at path.
func NewValue(c *recipes.Client, path string, opts ...Option) *Value {
	return &Value{client: c, path: path, cfg: newConfig(opts), writer: exactlyonce.New(c, path)}
}

// Close deletes what the Value has made for itself. It may be used again afterwards.
func (v *Value) Close(ctx context.Context) error { return v.writer.Close(ctx) }

// Get returns the value that the server knows that the Client is connected to; after Client.Sync, that is the last.
func (v *Value) Get(ctx context.Context) (Versioned[[]byte], error) {
	data, stat, err := v.client.Get(ctx, v.path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return Versioned[[]byte]{}, nil
	case err != nil:
		return Versioned[[]byte]{}, err
	}
	return versioned(data, stat), nil
}

// Next returns the value as soon as it is another than after, which it may be at once: what comes between two calls is not missed if
// after is what the one before returned. A value that is overwritten soon may be passed over, the last is not. With the zero Versioned it
// returns what is there, or waits for the first.
func (v *Value) Next(ctx context.Context, after Versioned[[]byte]) (Versioned[[]byte], error) {
	for {
		now, fires, err := v.watch(ctx)
		if err != nil {
			return Versioned[[]byte]{}, err
		}
		if now.Zxid > after.Zxid || !now.Exists() && after.Exists() {
			return now, nil
		}
		select {
		case <-fires:
		case <-ctx.Done():
			return Versioned[[]byte]{}, &recipes.Error{Op: "wait for a change of", Path: v.path, Err: context.Cause(ctx)}
		}
	}
}

// Changes returns what Next does, one after the other, until there is an error: so at the latest when ctx ends.
func (v *Value) Changes(ctx context.Context) iter.Seq2[Versioned[[]byte], error] {
	return changes(ctx, v.Next)
}

// Set replaces the value, whatever it is.
func (v *Value) Set(ctx context.Context, data []byte) error {
	for {
		_, err := v.writer.Do(ctx, &zk.SetDataRequest{Path: v.path, Data: data, Version: -1})
		if !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		if _, created, err := v.create(ctx, data); err != nil || created {
			return err
		}
	}
}

// CompareAndSet replaces the value if it is still what old says, also where somebody has written the same again. It returns what it has written, and
// false if the value is another. If old is the zero Versioned, the value is made.
func (v *Value) CompareAndSet(ctx context.Context, old Versioned[[]byte], data []byte) (Versioned[[]byte], bool, error) {
	for {
		now, done, err := v.swap(ctx, old, data)
		if !errors.Is(err, recipes.ErrOutcomeUnknown) || ctx.Err() != nil || !old.Exists() {
			return now, done, err
		}
		undone, lookErr := v.undone(ctx, old)
		if !undone {
			return now, false, errors.Join(err, lookErr)
		}
	}
}

// Update replaces the value by what f makes of it, until nobody was faster; see Optimistic and PromotedToLock. f gets nil if there is no znode, and
// what it gets and returns is not changed afterwards. When f fails, so does Update, with that error.
func (v *Value) Update(ctx context.Context, f func(old []byte) ([]byte, error)) (Change[[]byte], error) {
	var change Change[[]byte]
	done, err := v.optimistic(ctx, f, &change)
	if done || err != nil {
		return change, err
	}
	if v.cfg.lock == "" {
		return change, fmt.Errorf("shared: update %s: %w", v.path, ErrContended)
	}
	return change, v.promoted(ctx, f, &change)
}

// swap is CompareAndSet that leaves it unknown what was done if the session was lost.
func (v *Value) swap(ctx context.Context, old Versioned[[]byte], data []byte) (Versioned[[]byte], bool, error) {
	if !old.Exists() {
		return v.create(ctx, data)
	}
	zxid, err := v.writer.Do(ctx, &zk.SetDataRequest{Path: v.path, Data: data, Version: old.Version})
	switch {
	case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNoNode):
		return Versioned[[]byte]{}, false, nil
	case err != nil:
		return Versioned[[]byte]{}, false, err
	}
	return Versioned[[]byte]{Value: bytes.Clone(data), Version: old.Version + 1, Zxid: zxid}, true, nil
}

// create makes the znode, and what is above it. False if it is there.
func (v *Value) create(ctx context.Context, data []byte) (Versioned[[]byte], bool, error) {
	for {
		zxid, err := v.writer.Do(ctx, &zk.CreateRequest{Path: v.path, Data: data})
		switch {
		case err == nil:
			return Versioned[[]byte]{Value: bytes.Clone(data), Zxid: zxid}, true, nil
		case errors.Is(err, zk.ErrNodeExists):
			return Versioned[[]byte]{}, false, nil
		case !errors.Is(err, zk.ErrNoNode):
			return Versioned[[]byte]{}, false, err
		}
		if err := v.client.Ensure(ctx, parentOf(v.path)); err != nil {
			return Versioned[[]byte]{}, false, err
		}
	}
}

// undone looks after the session was lost whether what was asked for there was surely not applied. Nothing of that is on its way any more: the
// session was closed before there was another, and what was not sent until then has come to its end before the sync.
func (v *Value) undone(ctx context.Context, old Versioned[[]byte]) (bool, error) {
	if _, err := v.client.AwaitSession(ctx); err != nil {
		return false, err
	}
	if err := v.client.Sync(ctx, v.path); err != nil {
		return false, err
	}
	now, err := v.Get(ctx)
	return err == nil && now.Zxid == old.Zxid, err
}

// watch is Get with a channel that says when to look again.
func (v *Value) watch(ctx context.Context) (Versioned[[]byte], <-chan zk.Event, error) {
	for {
		data, stat, fires, err := v.client.GetW(ctx, v.path)
		if err == nil {
			return versioned(data, stat), fires, nil
		}
		if !errors.Is(err, zk.ErrNoNode) {
			return Versioned[[]byte]{}, nil, err
		}
		stat, fires, err = v.client.ExistsW(ctx, v.path)
		if stat == nil { // else it was made meanwhile
			return Versioned[[]byte]{}, fires, err
		}
	}
}

// changes repeats next.
func changes[T any](ctx context.Context, next func(context.Context, Versioned[T]) (Versioned[T], error)) iter.Seq2[Versioned[T], error] {
	return func(yield func(Versioned[T], error) bool) {
		var last Versioned[T]
		for {
			now, err := next(ctx, last)
			if !yield(now, err) || err != nil {
				return
			}
			last = now
		}
	}
}

func parentOf(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}
