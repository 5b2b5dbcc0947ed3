package shell

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

// runWatch prints the events of a path, a line for each, until ctx ends: that is how a watch is meant to end, and no error.
func runWatch(ctx context.Context, c *call) error {
	if len(c.args) != 1 {
		return errUsage
	}
	path := c.args[0]
	if err := checkPath(path); err != nil {
		return err
	}
	w := &watching{call: c, path: path, mode: proto.AddWatchPersistent, kind: proto.WatcherPersistent, data: c.has("-data")}
	if c.has("R") {
		w.mode, w.kind = proto.AddWatchPersistentRecursive, proto.WatcherPersistentRecursive
	}
	err := w.run(ctx)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// watching is a running watch.
type watching struct {
	*call
	path string
	mode proto.AddWatchMode
	kind proto.WatcherType
	data bool      // show it when it has changed
	lost time.Time // since when there is no connection; zero if there is one
}

// watchEndTimeout is how long the removal of a watch may take. A session that ends soon is not worth more.
const watchEndTimeout = 2 * time.Second

func (w *watching) run(ctx context.Context) error {
	events := newStream(w.path, w.mode == proto.AddWatchPersistentRecursive)
	w.stream.Store(events)
	defer w.stream.Store(nil)
	// Somebody may have set the same watch with addWatch. It stays then.
	had := w.zk.CheckWatches(ctx, w.path, w.kind) == nil
	if err := w.zk.AddWatch(ctx, w.path, w.mode); err != nil {
		return err
	}
	if !had {
		defer w.end(ctx, events)
	}
	if err := w.show(watchLine{at: time.Now(), kind: watchBegins, path: w.path, zxid: proto.NoZxid}); err != nil {
		return err
	}
	if err := w.current(ctx); err != nil {
		return err
	}
	for {
		list, dropped := events.next(ctx)
		if len(list) == 0 {
			return ctx.Err()
		}
		for _, e := range list {
			if err := w.event(ctx, e); err != nil {
				return err
			}
		}
		if dropped {
			err := w.show(watchLine{at: time.Now(), kind: watchMissed, zxid: proto.NoZxid, since: time.Now(), why: "they came faster than they could be printed"})
			if err = errors.Join(err, w.current(ctx)); err != nil {
				return err
			}
		}
	}
}

// end removes the watch, and waits for the event that says so. What fails is not told: the watch ends with the session, and
// what it sees until then is printed as other events are.
func (w *watching) end(ctx context.Context, events *stream) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), watchEndTimeout)
	defer cancel()
	if !w.connected() || w.zk.RemoveWatches(ctx, w.path, w.kind, true) != nil {
		return
	}
	for {
		list, _ := events.next(ctx)
		if len(list) == 0 || slices.ContainsFunc(list, func(e client.Event) bool { return e.Type == client.EventPersistentWatchRemoved }) {
			return
		}
	}
}

// event prints what an event has to say.
func (w *watching) event(ctx context.Context, e client.Event) error {
	now := time.Now()
	line := watchLine{at: now, kind: eventName(e), path: e.Path, zxid: e.Zxid}
	switch {
	case e.Type != client.EventSession:
		if w.data && (e.Type == proto.EventCreated || e.Type == proto.EventDataChanged) {
			if err := w.read(ctx, &line); err != nil {
				return err
			}
		}
		return w.show(line)
	case e.State.Ended():
		return failure("the watch has ended with its session: " + e.State.KeeperState())
	case e.State == client.Connecting:
		if w.lost.IsZero() {
			w.lost = now
		}
		line.kind, line.path, line.why = watchLost, w.path, "the connection is lost"
		return w.show(line)
	case w.lost.IsZero():
		return nil // the session's beginning
	}
	return w.again(ctx)
}

// again says that events may have been missed, from when the connection was lost until now. The client has asked the server
// to set its watches before all else: with the answer to anything that is asked now, the watch is set.
func (w *watching) again(ctx context.Context) error {
	_, _, err := w.zk.Exists(ctx, w.path, false)
	switch {
	case errors.Is(err, proto.ErrConnectionLoss):
		return nil // lost once more, as the next event says
	case err != nil && !errors.Is(err, proto.ErrNoAuth):
		return err
	}
	line := watchLine{at: time.Now(), kind: watchMissed, path: w.path, zxid: proto.NoZxid, since: w.lost, why: "connected again, to " + w.zk.Session().Server}
	w.lost = time.Time{}
	return errors.Join(w.show(line), w.current(ctx))
}

// current prints what there is now, if data is wanted.
func (w *watching) current(ctx context.Context) error {
	if !w.data {
		return nil
	}
	line := watchLine{at: time.Now(), kind: watchData, path: w.path, zxid: proto.NoZxid}
	if err := w.read(ctx, &line); err != nil {
		return err
	}
	return w.show(line)
}

// read adds to a line the data that its znode has now, which may be younger than the event. When it can't be had because
// the connection is lost once more, the line goes without: an event will say so.
func (w *watching) read(ctx context.Context, line *watchLine) error {
	data, st, err := w.zk.Get(ctx, line.path, false)
	switch {
	case err == nil:
		line.withData, line.data, line.stat = true, data, w.stat(st)
	case errors.Is(err, proto.ErrNoNode):
		line.withData = true
	case errors.Is(err, proto.ErrConnectionLoss) || errors.Is(err, proto.ErrNoAuth):
	default:
		return err
	}
	return nil
}
