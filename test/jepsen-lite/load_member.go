package jepsenlite

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
)

// loadMember makes sessions with several ephemerals each, which end by being closed or by expiring. Observers must see all
// of a session's ephemerals or none, and not see them vanish too early.
const (
	loadMember      = "member"
	memberLoadNodes = 3
	// memberTimeoutLeast and memberTimeoutMost bound the session timeouts.
	memberTimeoutLeast = 2 * time.Second
	memberTimeoutMost  = 4 * time.Second
)

func runMember(ctx context.Context, w *worker) {
	for ctx.Err() == nil {
		w.liveOnce(ctx)
	}
}

// liveOnce makes a session, and lets it live and end.
func (w *worker) liveOnce(ctx context.Context) {
	w.made++
	name := fmt.Sprintf("%s.%d", w.name, w.made)
	timeout := memberTimeoutLeast + time.Duration(w.rng.Int64N(int64(memberTimeoutMost-memberTimeoutLeast)))
	c, err := connect(w.rec, loadMember+"-"+name, w.addresses, w.home+w.made, timeout)
	if err != nil {
		_ = pause(ctx, time.Second) // there is no other reason than bad luck with sockets
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
	// What came of it is in the history.
	_, _ = c.Multi(creates...)
	for end := w.rng.IntN(60); end > 0 && w.next(ctx); end-- {
		// Others look, and its own session shows that it lives.
		_, _, _ = w.Children(w.dir)
		_, _ = c.Set(fmt.Sprintf("%s/%s_0", w.dir, name), []byte(w.value()), -1)
	}
	if w.rng.IntN(2) == 0 {
		return
	}
	// An error is that of closing what is broken already.
	_ = c.vanish()
	for patience := time.Now().Add(2 * timeout); time.Now().Before(patience) && w.next(ctx); {
		_, _, _ = w.Children(w.dir)
	}
}

// settleMember waits until the last sessions must have expired, whoever the leader was meanwhile.
func settleMember(w *worker) {
	const patience = 4 * memberTimeoutMost
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if names, err := w.syncedChildren(w.dir); err == nil && len(names) == 0 {
			return
		}
		time.Sleep(w.pace) // between two looks
	}
}
