package shell

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

func runAddWatch(ctx context.Context, c *call) error {
	if len(c.args) != 1 {
		return errUsage
	}
	mode := proto.AddWatchPersistentRecursive
	if c.has("m") {
		switch strings.ToUpper(c.value("m")) {
		case "PERSISTENT":
			mode = proto.AddWatchPersistent
		case "PERSISTENT_RECURSIVE":
		default:
			return errUsage
		}
	}
	return c.zk.AddWatch(ctx, c.args[0], mode)
}

func runRemoveWatches(ctx context.Context, c *call) error {
	kind := proto.WatcherAny
	switch {
	case c.has("c"):
		kind = proto.WatcherChildren
	case c.has("d"):
		kind = proto.WatcherData
	case c.has("p"):
		kind = proto.WatcherPersistent
	case c.has("r"):
		kind = proto.WatcherPersistentRecursive
	}
	return c.zk.RemoveWatches(ctx, c.args[0], kind, c.has("l"))
}

// runWatch prints the events of a path, one line each, until ctx ends, which is not an error.
func runWatch(ctx context.Context, c *call) error {
	if len(c.args) != 1 {
		return errUsage
	}
	path := c.args[0]
	w := &runningWatch{call: c, path: path, mode: proto.AddWatchPersistent, kind: proto.WatcherPersistent, data: c.has("-data")}
	if c.has("R") {
		w.mode, w.kind = proto.AddWatchPersistentRecursive, proto.WatcherPersistentRecursive
	}
	err := w.run(ctx)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

type runningWatch struct {
	*call
	path string
	mode proto.AddWatchMode
	kind proto.WatcherType
	data bool      // show the data after each change
	lost time.Time // when the connection was lost; zero while connected
}

func (w *runningWatch) run(ctx context.Context) error {
	events := newEventQueue(w.path, w.mode == proto.AddWatchPersistentRecursive)
	w.watching.Store(events)
	defer w.watching.Store(nil)
	// A watch that addWatch has set before must stay.
	had := w.zk.CheckWatches(ctx, w.path, w.kind) == nil
	if err := w.zk.AddWatch(ctx, w.path, w.mode); err != nil {
		return err
	}
	if !had {
		defer w.remove(ctx, events)
	}
	if err := w.printLine(watchLine{at: time.Now(), kind: watchBegins, path: w.path, zxid: proto.NoZxid}); err != nil {
		return err
	}
	if err := w.printCurrent(ctx); err != nil {
		return err
	}
	for {
		list, dropped := events.next(ctx)
		if len(list) == 0 {
			return ctx.Err()
		}
		for _, e := range list {
			if err := w.printEventOf(ctx, e); err != nil {
				return err
			}
		}
		if dropped {
			err := w.printLine(watchLine{at: time.Now(), kind: watchMissed, zxid: proto.NoZxid, since: time.Now(), why: "events arrived faster than they could be printed"})
			if err = errors.Join(err, w.printCurrent(ctx)); err != nil {
				return err
			}
		}
	}
}

// removeTimeout bounds the removal of a watch; the session ends soon anyway.
const removeTimeout = 2 * time.Second

// remove removes the watch and waits for the event that confirms it. Errors are ignored: the watch
// ends with the session, and its events until then are printed like others.
func (w *runningWatch) remove(ctx context.Context, events *eventQueue) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
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

func (w *runningWatch) printLine(l watchLine) error { return w.print(l, l.String()) }

func (w *runningWatch) printEventOf(ctx context.Context, e client.Event) error {
	now := time.Now()
	line := watchLine{at: now, kind: eventName(e), path: e.Path, zxid: e.Zxid}
	switch {
	case e.Type != client.EventSession:
		if w.data && (e.Type == proto.EventCreated || e.Type == proto.EventDataChanged) {
			if err := w.read(ctx, &line); err != nil {
				return err
			}
		}
		return w.printLine(line)
	case e.State.Ended():
		return failure("the watch has ended with its session: " + e.State.KeeperState())
	case e.State == client.Connecting:
		if w.lost.IsZero() {
			w.lost = now
		}
		line.kind, line.path, line.why = watchLost, w.path, "the connection is lost"
		return w.printLine(line)
	case w.lost.IsZero():
		return nil // the session has just begun
	}
	return w.printReconnected(ctx)
}

// printReconnected reports that events may have been missed. The client sets its watches again
// before any other request, so the watch is set once a request is answered.
func (w *runningWatch) printReconnected(ctx context.Context) error {
	_, _, err := w.zk.Exists(ctx, w.path, false)
	switch {
	case errors.Is(err, proto.ErrConnectionLoss):
		return nil // the next event reports the error
	case err != nil && !errors.Is(err, proto.ErrNoAuth):
		return err
	}
	line := watchLine{at: time.Now(), kind: watchMissed, path: w.path, zxid: proto.NoZxid, since: w.lost, why: "connected again, to " + w.zk.Session().Server}
	w.lost = time.Time{}
	return errors.Join(w.printLine(line), w.printCurrent(ctx))
}

func (w *runningWatch) printCurrent(ctx context.Context) error {
	if !w.data {
		return nil
	}
	line := watchLine{at: time.Now(), kind: watchData, path: w.path, zxid: proto.NoZxid}
	if err := w.read(ctx, &line); err != nil {
		return err
	}
	return w.printLine(line)
}

// read adds the znode's current data to a line; the data may be newer than the event. If the
// connection is lost again, the line stays without data, and an event will report the loss.
func (w *runningWatch) read(ctx context.Context, line *watchLine) error {
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

// The kinds of lines other than the types of ZooKeeper's events.
const (
	watchBegins = "Watching" // events are seen from now on
	watchData   = "Current"  // the current data, with --data
	watchLost   = "Lost"     // the connection is lost: events from now on may be missed
	watchMissed = "Missed"   // events since a time may have been missed
)

type watchLine struct {
	at    time.Time
	kind  string
	path  string
	zxid  proto.Zxid // of an event; proto.NoZxid if the server did not send it
	since time.Time  // of watchMissed
	why   string

	withData bool
	data     []byte
	stat     *stat // nil: the znode does not exist
}

// watchTime is JSON's time layout, in local time.
const watchTime = "2006-01-02T15:04:05.000Z07:00"

// String returns the line as text, with a newline.
func (l watchLine) String() string {
	line := l.at.Format(watchTime) + " "
	switch l.kind {
	case watchLost:
		line += "!!! " + l.why + ": events from now on may be missed"
	case watchMissed:
		line += "!!! " + l.why + ": events since " + l.since.Format(watchTime) + " may have been missed"
	default:
		line += l.kind + " " + l.path
	}
	if l.zxid != proto.NoZxid {
		line += " zxid=" + l.zxid.String()
	}
	switch {
	case !l.withData:
	case l.stat == nil:
		line += " gone"
	case l.data == nil:
		line += fmt.Sprintf(" version=%d data=null", l.stat.Version)
	case !utf8.Valid(l.data):
		line += fmt.Sprintf(" version=%d data_base64=%s", l.stat.Version, *base64Of(l.data).Base64)
	default:
		line += fmt.Sprintf(" version=%d data=%s", l.stat.Version, strconv.Quote(string(l.data)))
	}
	return line + "\n"
}

// MarshalJSON adds data and Stat if they were asked for; "stat" is null if there is no znode.
func (l watchLine) MarshalJSON() ([]byte, error) {
	type head struct {
		Time  string `json:"time"`
		Type  string `json:"type"`
		Path  string `json:"path,omitempty"`
		Zxid  string `json:"zxid,omitempty"`
		Since string `json:"since,omitempty"`
		Why   string `json:"why,omitempty"`
	}
	h := head{Time: jsonDate(l.at.UnixMilli()), Type: l.kind, Path: l.path, Why: l.why}
	if l.zxid != proto.NoZxid {
		h.Zxid = l.zxid.String()
	}
	if !l.since.IsZero() {
		h.Since = jsonDate(l.since.UnixMilli())
	}
	if !l.withData {
		return marshal(h)
	}
	data := jsonData{}
	if l.stat != nil {
		data = dataOf(l.data, false)
	}
	return marshal(struct {
		head
		jsonData
		Stat *stat `json:"stat"`
	}{h, data, l.stat})
}
