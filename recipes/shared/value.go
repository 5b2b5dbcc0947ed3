package shared

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/calls"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/exactlyonce"
)

// Versioned is the state of a value at one moment. The zero value stands for a missing znode.
type Versioned[T any] struct {
	Value   T
	Version int32
	Zxid    int64     // of the value's last change; 0 if there is no znode
	Since   time.Time // of that change, by the leader's clock; zero in the result of a change
}

// Exists reports whether there was a znode.
func (v Versioned[T]) Exists() bool { return v.Zxid != 0 }

// Change is the result of an update.
type Change[T any] struct {
	Before, After Versioned[T]
	Optimistic    int // attempts without the lock
	Promoted      int // attempts under the lock
}

// Value is the data of a znode that many processes change. The first change creates the znode. Its
// methods are those of Typed, where T is []byte. Safe for concurrent use; a Value makes one change
// at a time.
//
// The first change of a Client creates an ephemeral child of the znode, which shows after a lost
// answer whether the change was applied. All Values and Numbers of the Client with the same path
// share the child. Close deletes the child.
type Value struct{ Typed[[]byte] }

// NewValue returns the value at path.
func NewValue(c *recipes.Client, path string, opts ...Option) *Value {
	return &Value{Typed[[]byte]{newAtomicValue(c, path, raw, opts)}}
}

// atomicValue has the methods that Typed and Number share.
type atomicValue[T any] struct {
	client *recipes.Client
	path   string
	codec  codec[T]
	cfg    config
	writer *exactlyonce.Writer
}

func newAtomicValue[T any](c *recipes.Client, path string, codec codec[T], opts []Option) *atomicValue[T] {
	writer := recipes.Shared(c, writerKey(path), func() *exactlyonce.Writer { return exactlyonce.New(c, path) })
	return &atomicValue[T]{c, path, codec, newConfig(opts), writer}
}

// writerKey is the key of the Writer that a Client's values of the same path share.
type writerKey string

// Close deletes the child that the first change created; the next change creates another. Close
// waits for the session timeout at most.
func (v *atomicValue[T]) Close() error { return calls.Close(v.client, v.writer.Close) }

// Get returns the value according to the Client's server. After Client.Sync that is the latest.
func (v *atomicValue[T]) Get(ctx context.Context) (Versioned[T], error) {
	data, stat, err := v.client.Get(ctx, v.path)
	if err != nil {
		return Versioned[T]{}, contend.IgnoreMissing(err)
	}
	return v.decode(data, stat)
}

// Next returns the value once the value differs from after, which may be at once. If after is the
// result of the previous call, no final change is missed: a value that is overwritten soon may be
// skipped, the latest is not. With a zero after, Next returns the present value or waits for the
// first. With recipes.ErrFormat, the result has the Version and Zxid of the data: as after, it
// makes Next wait for the next change.
func (v *atomicValue[T]) Next(ctx context.Context, after Versioned[T]) (Versioned[T], error) {
	for {
		data, stat, fires, err := v.watch(ctx)
		if err != nil {
			return Versioned[T]{}, err
		}
		switch {
		case stat == nil && after.Exists():
			return Versioned[T]{}, nil
		case stat != nil && int64(stat.Mzxid) > after.Zxid:
			return v.decode(data, stat)
		}
		if err := calls.Await(ctx, "wait for a change of", v.path, fires); err != nil {
			return Versioned[T]{}, err
		}
	}
}

// Changes returns the results of Next, each with the previous result as after, until ctx ends or
// Next fails. Data that cannot be decoded end nothing: the loop gets recipes.ErrFormat, and later
// the next value.
func (v *atomicValue[T]) Changes(ctx context.Context) iter.Seq2[Versioned[T], error] {
	return func(yield func(Versioned[T], error) bool) {
		var last Versioned[T]
		for {
			now, err := v.Next(ctx, last)
			if !yield(now, err) || err != nil && !errors.Is(err, recipes.ErrFormat) {
				return
			}
			last = now
		}
	}
}

// Set replaces the value unconditionally.
func (v *atomicValue[T]) Set(ctx context.Context, value T) error {
	data, err := v.codec.encode(value)
	if err != nil {
		return err
	}
	for {
		_, err := v.writer.Write(ctx, client.SetOp(v.path, data, -1))
		if !errors.Is(err, proto.ErrNoNode) {
			return err
		}
		if _, created, err := v.create(ctx, value); err != nil || created {
			return err
		}
	}
}

// CompareAndSet replaces the value if nobody has written since old, not even the same value. The
// result is the new value, or false if the value is not old. A zero old means that the znode must
// not exist; CompareAndSet creates the znode.
func (v *atomicValue[T]) CompareAndSet(ctx context.Context, old Versioned[T], value T) (Versioned[T], bool, error) {
	for {
		now, done, err := v.tryCompareAndSet(ctx, old, value)
		if !errors.Is(err, recipes.ErrOutcomeUnknown) || ctx.Err() != nil || !old.Exists() {
			return now, done, err
		}
		unchanged, checkErr := v.isUnchanged(ctx, old)
		if !unchanged {
			return now, false, errors.Join(err, checkErr)
		}
	}
}

// Update replaces the value by the result of f, and repeats that until no other process was faster;
// see Optimistic and PromotedToLock. f gets the zero value if there is no znode. Slices that f gets
// or returns must not be modified. If f fails, Update fails with that error.
func (v *atomicValue[T]) Update(ctx context.Context, f func(old T) (T, error)) (Change[T], error) {
	var change Change[T]
	done, err := v.updateOptimistic(ctx, f, &change)
	if done || err != nil {
		return change, err
	}
	if v.cfg.lock == "" {
		return change, fmt.Errorf("shared: update %s: %w", v.path, ErrContended)
	}
	return change, v.updateLocked(ctx, f, &change)
}

// updateOptimistic tries until success, or until the policy stops.
func (v *atomicValue[T]) updateOptimistic(ctx context.Context, f func(T) (T, error), change *Change[T]) (bool, error) {
	start := time.Now()
	for {
		change.Optimistic++
		if done, err := v.tryUpdate(ctx, f, change); done || err != nil {
			return done, err
		}
		wait, again := v.cfg.optimistic(change.Optimistic, time.Since(start))
		if !again {
			return false, nil
		}
		if !backoff.Sleep(ctx, wait) {
			return false, &recipes.Error{Op: "update", Path: v.path, Err: calls.ContextError(ctx)}
		}
	}
}

// updateLocked tries under the lock, where only processes that still try without the lock compete.
// The lock makes success likely. The version makes the change correct, so losing it does no harm.
func (v *atomicValue[T]) updateLocked(ctx context.Context, f func(T) (T, error), change *Change[T]) (err error) {
	held, err := contend.Acquire(ctx, v.client, v.cfg.lock, "lock-", nil, contend.Exclusive)
	if err != nil {
		return err
	}
	defer func() {
		if released := held.Release(ctx); err == nil {
			err = calls.WithCleanup(nil, released)
		}
	}()
	for {
		change.Promoted++
		if done, err := v.tryUpdate(ctx, f, change); done || err != nil {
			return err
		}
	}
}

// tryUpdate makes an attempt, and on success sets change.Before and change.After.
func (v *atomicValue[T]) tryUpdate(ctx context.Context, f func(T) (T, error), change *Change[T]) (bool, error) {
	before, err := v.Get(ctx)
	if err != nil {
		return false, err
	}
	value, err := f(before.Value)
	if err != nil {
		return false, err
	}
	after, done, err := v.CompareAndSet(ctx, before, value)
	if done {
		change.Before, change.After = before, after
	}
	return done, err
}

// tryCompareAndSet is CompareAndSet with an unknown outcome if the session is lost.
func (v *atomicValue[T]) tryCompareAndSet(ctx context.Context, old Versioned[T], value T) (Versioned[T], bool, error) {
	if !old.Exists() {
		return v.create(ctx, value)
	}
	data, err := v.codec.encode(value)
	if err != nil {
		return Versioned[T]{}, false, err
	}
	r, err := v.writer.Write(ctx, client.SetOp(v.path, data, old.Version))
	switch {
	case errors.Is(err, proto.ErrBadVersion), errors.Is(err, proto.ErrNoNode):
		return Versioned[T]{}, false, nil
	case err != nil:
		return Versioned[T]{}, false, err
	}
	return v.written(data, old.Version+1, r.Zxid)
}

// create creates the znode and its missing parents. The result is false if the znode exists.
func (v *atomicValue[T]) create(ctx context.Context, value T) (Versioned[T], bool, error) {
	data, err := v.codec.encode(value)
	if err != nil {
		return Versioned[T]{}, false, err
	}
	for {
		r, err := v.writer.Write(ctx, client.CreateOp(v.path, data, client.CreateOptions{}))
		switch {
		case err == nil:
			return v.written(data, 0, r.Zxid)
		case errors.Is(err, proto.ErrNodeExists):
			return Versioned[T]{}, false, nil
		case !errors.Is(err, proto.ErrNoNode):
			return Versioned[T]{}, false, err
		}
		if err := v.client.Ensure(ctx, proto.ParentPath(v.path)); err != nil {
			return Versioned[T]{}, false, err
		}
	}
}

func (v *atomicValue[T]) written(data []byte, version int32, zxid int64) (Versioned[T], bool, error) {
	value, err := v.codec.decode(bytes.Clone(data))
	return Versioned[T]{Value: value, Version: version, Zxid: zxid}, true, err
}

// isUnchanged reports, after the session was lost, whether the value is still old, so that a change
// whose answer was lost was certainly not applied. That change cannot be applied later either: the
// session was closed before the next session began, and requests that were not sent by then have
// completed before the sync.
func (v *atomicValue[T]) isUnchanged(ctx context.Context, old Versioned[T]) (bool, error) {
	if _, err := v.client.AwaitSession(ctx); err != nil {
		return false, err
	}
	if err := v.client.Sync(ctx, v.path); err != nil {
		return false, err
	}
	stat, err := v.client.Exists(ctx, v.path)
	return err == nil && stat != nil && int64(stat.Mzxid) == old.Zxid, err
}

// watch reads the data and sets a watch, also if the znode is missing; stat is nil then.
func (v *atomicValue[T]) watch(ctx context.Context) (data []byte, stat *proto.Stat, fires <-chan client.Event, err error) {
	for {
		data, stat, fires, err = v.client.GetW(ctx, v.path)
		if !errors.Is(err, proto.ErrNoNode) {
			return data, stat, fires, err
		}
		stat, fires, err = v.client.ExistsW(ctx, v.path)
		if stat == nil { // otherwise it was created meanwhile
			return nil, nil, fires, err
		}
	}
}

func (v *atomicValue[T]) decode(data []byte, stat *proto.Stat) (Versioned[T], error) {
	return read(v.codec, data, stat)
}

func read[T any](c codec[T], data []byte, stat *proto.Stat) (Versioned[T], error) {
	value, err := c.decode(data)
	return Versioned[T]{value, stat.Version, int64(stat.Mzxid), time.UnixMilli(stat.MtimeMs)}, err
}

var (
	// ErrContended means that other processes were faster at each attempt. Nothing was changed.
	ErrContended = errors.New("shared: other processes were faster at each attempt")
	// ErrOverflow means that a sum is too large. Nothing was changed.
	ErrOverflow = errors.New("shared: overflow")
)

// Option changes how a Value or Number deals with concurrent changes.
type Option func(*config)

type config struct {
	optimistic recipes.RetryPolicy
	lock       string
}

func newConfig(opts []Option) config {
	cfg := config{optimistic: recipes.Exponential(5*time.Millisecond, 100*time.Millisecond, 10)}
	for _, o := range opts {
		if o != nil {
			o(&cfg)
		}
	}
	return cfg
}

// Optimistic sets when a change is retried after another process was faster. The default is
// Exponential(5 ms, 100 ms, 10).
func Optimistic(policy recipes.RetryPolicy) Option {
	return func(c *config) { c.optimistic = policy }
}

// PromotedToLock lets a change that Optimistic no longer retries continue until done, under a lock
// at path: the lock of Curator's PromotedToLock. Without it such a change fails with ErrContended.
func PromotedToLock(path string) Option {
	return func(c *config) { c.lock = path }
}
