package jepsenlite

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"
)

// loadLock takes turns: whose ephemeral sequential znode is the lowest holds the lock, and its number is the token that
// fences off those who held it before.
const loadLock = "lock"

func runLock(ctx context.Context, w *worker) {
	for w.next(ctx) {
		own, err := w.create(w.dir+"/l-", w.value(), zk.FlagEphemeral|zk.FlagSequence)
		if err != nil {
			continue // if it is there all the same, it goes with the session; the others wait until then
		}
		w.awaitLock(ctx, own)
		// Given up, or given back: until that is answered, nobody else may take it.
		for {
			err := w.Delete(own, -1)
			if err == nil || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrSessionExpired) || ctx.Err() != nil {
				break
			}
		}
	}
}

// awaitLock returns some time after own was the lowest, when own is gone with its session, or when the round ends.
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
