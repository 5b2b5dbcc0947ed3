package jepsenlite

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"
)

// loadLock: the owner of the lowest ephemeral sequential znode holds the lock; its number is the
// fencing token.
const loadLock = "lock"

func runLock(ctx context.Context, w *worker) {
	for w.next(ctx) {
		own, err := w.create(w.dir+"/l-", w.value(), zk.FlagEphemeral|zk.FlagSequence)
		if err != nil {
			continue // if the create succeeded, its znode goes with the session; the others wait until then
		}
		w.awaitLock(ctx, own)
		// Released or abandoned: until the delete is answered, nobody else may acquire.
		for {
			err := w.Delete(own, -1)
			if err == nil || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrSessionExpired) || ctx.Err() != nil {
				break
			}
		}
	}
}

// awaitLock returns some time after own was the lowest, when own is gone with its session, or when
// the round ends.
func (w *worker) awaitLock(ctx context.Context, own string) {
	for w.next(ctx) {
		names, _, err := w.Children(w.dir)
		switch {
		case err != nil:
		case !slices.Contains(names, baseName(own)):
			return
		case slices.Min(names) == baseName(own):
			w.next(ctx) // holds it
			return
		}
	}
}
