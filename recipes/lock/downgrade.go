package lock

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/sequence"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// Downgrade turns the write lock w into a read lock, with no other writer in between, and releases w
// once; readers that wait are then served. If Downgrade fails, no read lock is held, and w is
// unchanged or lost. Downgrade panics if w is not a write lock of m.
//
// If w was acquired again with Lock.Again, w stays held together with the read lock until its
// remaining calls of Release.
func (m *RWMutex) Downgrade(ctx context.Context, w *Lock) (*Lock, error) {
	if w.writes != m {
		panic("lock: Downgrade of a lock that is not a write lock of this RWMutex")
	}
	if w.Context().Err() != nil {
		return nil, &recipes.Error{Op: "downgrade", Path: w.Path(), Err: recipes.ErrNotHeld}
	}
	r, err := m.readInPlaceOf(ctx, w.Hold)
	if err != nil {
		return nil, err
	}
	// If somebody deleted the znode of w just now, the znode of r already existed.
	if err := w.Release(ctx); err != nil && !onlyUnknown(err) && !errors.Is(err, recipes.ErrNotHeld) {
		return nil, errors.Join(err, r.Release(ctx))
	}
	return r, nil
}

// readInPlaceOf creates a reader's znode with the number of the writer's znode, as Curator does, so
// the reader stands before everybody who arrived after the writer. The writer's znode must still
// exist once the reader's does: then no other writer came in between.
func (m *RWMutex) readInPlaceOf(ctx context.Context, w *recipes.Hold) (*Lock, error) {
	in, cancel := w.Within(ctx)
	defer cancel()
	_, prefix, _ := sequence.Parse(w.Path())
	number := w.Path()[len(prefix):]
	path, err := m.client.Create(in, znodepath.Join(m.path, m.reading.name+number), m.data, recipes.CreateOptions{Ephemeral: true, Protected: true})
	if err != nil {
		return nil, err
	}
	names, stat, err := m.client.Children(in, m.path)
	if errors.Is(err, zk.ErrNoNode) || err == nil && !slices.Contains(names, znodepath.Base(w.Path())) {
		err = &recipes.Error{Op: "downgrade", Path: w.Path(), Err: recipes.ErrNotHeld}
	}
	if err == nil {
		return newLock(m.client.Hold(w.Session(), path, stat.Pzxid), nil), nil
	}
	if w.Session().Context().Err() != nil {
		return nil, err // the server deletes the znode with the session
	}
	if e := m.client.DeleteGuaranteed(ctx, path); e != nil && !onlyUnknown(e) {
		err = errors.Join(err, e)
	}
	return nil, err
}
