package jepsenlite

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
)

// loadMember creates sessions with several ephemerals each, which are closed or expire. Observers
// must see all of a session's ephemerals or none, and none may vanish too early.
const (
	loadMember      = "member"
	memberLoadNodes = 3
	// shortTimeout is the least timeout of these sessions; the longest is twice as long.
	shortTimeout = 2 * time.Second
)

func runMember(ctx context.Context, w *worker) {
	for ctx.Err() == nil {
		w.liveOnce(ctx)
	}
}

// liveOnce creates a session and lets it live and end.
func (w *worker) liveOnce(ctx context.Context) {
	w.made++
	name := fmt.Sprintf("%s.%d", w.name, w.made)
	timeout := w.short + time.Duration(w.rng.Int64N(int64(w.short)))
	c, err := connect(w.rec, loadMember+"-"+name, w.addresses, w.home+w.made, timeout)
	if err != nil {
		_ = pause(ctx, time.Second) // out of luck with sockets
		return
	}
	defer c.Close()
	if c.await(ctx) != nil {
		return
	}
	var creates []any
	for i := range memberLoadNodes {
		creates = append(creates, &zk.CreateRequest{Path: fmt.Sprintf("%s/%s_%d", w.dir, name, i), Acl: openACL(), Flags: zk.FlagEphemeral})
	}
	// The history has the result.
	_, _ = c.Multi(creates...)
	for end := w.rng.IntN(60); end > 0 && w.next(ctx); end-- {
		// Others look, and its own session shows that it lives.
		_, _, _ = w.Children(w.dir)
		_, _ = c.Set(fmt.Sprintf("%s/%s_0", w.dir, name), []byte(w.value()), -1)
	}
	if w.rng.IntN(2) == 0 {
		return
	}
	// The connection may be broken already.
	_ = c.vanish()
	for patience := time.Now().Add(2 * timeout); time.Now().Before(patience) && w.next(ctx); {
		_, _, _ = w.Children(w.dir)
	}
}

// settleMember waits until the last sessions must have expired, whoever led meanwhile.
func settleMember(w *worker) {
	for end := time.Now().Add(8 * w.short); time.Now().Before(end); {
		if names, err := w.syncedChildren(w.dir); err == nil && len(names) == 0 {
			return
		}
		time.Sleep(w.pace) // between two reads
	}
}
