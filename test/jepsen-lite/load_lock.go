package jepsenlite

import (
	"context"
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
		for w.next(ctx) {
			names, _, err := w.Children(w.dir)
			if err != nil {
				continue
			}
			if !slices.Contains(names, baseName(own)) {
				break // the session has expired
			}
			if slices.Min(names) == baseName(own) && !w.next(ctx) {
				break
			} else if slices.Min(names) == baseName(own) {
				break
			}
		}
		// Given up, or given back: until that is answered, nobody else may take it.
		for {
			err := w.Delete(own, -1)
			if err == nil || err == zk.ErrNoNode || err == zk.ErrSessionExpired || ctx.Err() != nil {
				break
			}
		}
	}
}
