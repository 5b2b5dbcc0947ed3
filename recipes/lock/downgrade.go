package lock

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// Downgrade makes a read lock of the write lock w, with no other writer in between, and unlocks w once; readers that wait come in then. When
// it fails, w is as it was, or lost, and no read lock is held. It panics if w is not a write lock of m.
//
// If w was locked again, it stays held together with the read lock until it is unlocked as often.
func (m *RWMutex) Downgrade(ctx context.Context, w *Lock) (*Lock, error) {
	if w.writeLockOf != m {
		panic("lock: Downgrade of what is not a write lock of this RWMutex")
	}
	if w.Context().Err() != nil {
		return nil, &recipes.Error{Op: "downgrade", Path: w.Path(), Err: recipes.ErrNotHeld}
	}
	r, err := m.readInPlaceOf(ctx, w.held)
	if err != nil {
		return nil, err
	}
	// If somebody deleted the znode of w just now, that of r was there before.
	if err := w.Unlock(ctx); err != nil && !onlyUnknown(err) && !errors.Is(err, recipes.ErrNotHeld) {
		return nil, join(err, r.Unlock(ctx))
	}
	return r, nil
}

// readInPlaceOf creates a reader's znode with the number of the writer's, as Curator does: so it stands before all who came after the
// writer. That the writer's was there when the reader's was there already says that nobody came in between.
func (m *RWMutex) readInPlaceOf(ctx context.Context, w *recipes.Hold) (*Lock, error) {
	in, cancel := w.Within(ctx)
	defer cancel()
	_, prefix, _ := recipes.Sequence(w.Path())
	number := w.Path()[len(prefix):]
	path, err := m.client.Create(in, znodepath.Join(m.path, m.read+number), m.data, recipes.CreateOptions{Mode: recipes.Ephemeral, Protected: true})
	if err != nil {
		return nil, err
	}
	names, stat, err := m.client.Children(in, m.path)
	if errors.Is(err, zk.ErrNoNode) || err == nil && !slices.Contains(names, znodepath.Base(w.Path())) {
		err = &recipes.Error{Op: "downgrade", Path: w.Path(), Err: recipes.ErrNotHeld}
	}
	if err == nil {
		return newLock(m.client.Hold(w.Session(), path, stat.Pzxid)), nil
	}
	if w.Session().Context().Err() != nil {
		return nil, err // it goes with the session
	}
	if e := m.client.DeleteGuaranteed(ctx, path); e != nil && !onlyUnknown(e) {
		err = join(err, e)
	}
	return nil, err
}
