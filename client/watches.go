package client

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/gozkd/gozkd/proto"
)

// watchKind is a list of setWatches.
type watchKind uint8

const (
	watchData watchKind = iota
	watchExists
	watchChildren
	watchPersistent
	watchRecursive
	nWatchKinds
)

// watchOn is a watch that a successful request sets, on a path of the server.
type watchOn struct {
	path string
	kind watchKind
}

func watchIf(on bool, path string, kind watchKind) *watchOn {
	if !on {
		return nil
	}
	return &watchOn{path, kind}
}

// watchTable holds the watches of the Client, by kind and server's path, to restore on the next
// connection. Guarded by Client.mu.
type watchTable [nWatchKinds]map[string]struct{}

func newWatchTable() (t watchTable) {
	for kind := range t {
		t[kind] = map[string]struct{}{}
	}
	return t
}

// set adds a watch after the reply to its request. Source: protocol reference, 9.2.
func (t *watchTable) set(w watchOn, code proto.ErrCode) {
	switch {
	case code == proto.OK && w.kind == watchExists:
		t[watchData][w.path] = struct{}{}
	case code == proto.OK, code == proto.ErrNoNode && w.kind == watchExists:
		t[w.kind][w.path] = struct{}{}
	}
}

// has reports whether there is a watch. take also removes the watch.
func (t *watchTable) has(kind watchKind, path string) bool {
	_, ok := t[kind][path]
	return ok
}

func (t *watchTable) take(kind watchKind, path string) bool {
	ok := t.has(kind, path)
	delete(t[kind], path)
	return ok
}

// fire removes the one-shot watches that an event fires, and reports whether any watch wants it.
func (t *watchTable) fire(event proto.EventType, path string) bool {
	var kinds []watchKind
	switch event {
	case proto.EventCreated, proto.EventDataChanged:
		kinds = []watchKind{watchData, watchExists}
	case proto.EventDeleted:
		kinds = []watchKind{watchData, watchExists, watchChildren}
	case proto.EventChildrenChanged:
		kinds = []watchKind{watchChildren}
	}
	wanted := t.has(watchPersistent, path)
	for _, kind := range kinds {
		wanted = t.take(kind, path) || wanted
	}
	return wanted || event != proto.EventChildrenChanged && t.recursive(path)
}

func (t *watchTable) persistent() bool { return len(t[watchPersistent])+len(t[watchRecursive]) > 0 }

// recursive reports whether there is a recursive watch on path or above it.
func (t *watchTable) recursive(path string) bool {
	for len(t[watchRecursive]) > 0 {
		if t.has(watchRecursive, path) {
			return true
		}
		if path == "/" {
			return false
		}
		path = proto.ParentPath(path)
	}
	return false
}

// forgetWatches removes watches on a path and delivers an event for each kind set. c.mu is held.
func (c *Client) forgetWatches(path string, kind proto.WatcherType) {
	t := &c.watches
	tell := func(event proto.EventType) {
		c.events.push(Event{Type: event, State: c.state, Path: c.strip(path), Zxid: proto.NoZxid})
	}
	is := func(kinds ...proto.WatcherType) bool { return kind == proto.WatcherAny || slices.Contains(kinds, kind) }
	if is(proto.WatcherChildren) && t.take(watchChildren, path) {
		tell(EventChildWatchRemoved)
	}
	if is(proto.WatcherData) {
		data, exists := t.take(watchData, path), t.take(watchExists, path)
		if data || exists {
			tell(EventDataWatchRemoved)
		}
	}
	persistent := is(proto.WatcherPersistent) && t.take(watchPersistent, path)
	recursive := is(proto.WatcherPersistentRecursive) && t.take(watchRecursive, path)
	if persistent || recursive {
		tell(EventPersistentWatchRemoved)
	}
}

// setWatchesBytes bounds the paths in a setWatches request, approximately.
const setWatchesBytes = 128 << 10

// frames returns the requests that restore all watches. The server then sends at once the events
// that the client missed after since.
func (t *watchTable) frames(since proto.Zxid) (frames [][]byte) {
	op := proto.OpSetWatches
	// Servers before 3.6 know neither these kinds nor setWatches2.
	if t.persistent() {
		op = proto.OpSetWatches2
	}
	var lists [nWatchKinds][]string
	size := 0
	flush := func() {
		if size == 0 {
			return
		}
		if len(lists[watchPersistent])+len(lists[watchRecursive]) > 0 {
			lists[watchPersistent] = append(lists[watchPersistent], proto.ReplayMark)
		}
		for kind := range lists {
			if lists[kind] == nil {
				lists[kind] = []string{} // other clients never send null
			}
		}
		r := proto.SetWatchesRequest{
			RelativeZxid: since, Data: lists[watchData], Exist: lists[watchExists], Child: lists[watchChildren],
			Persistent: lists[watchPersistent], PersistentRecursive: lists[watchRecursive],
		}
		frames = append(frames, frame(proto.XidSetWatches, op, func(b []byte) []byte { return r.Append(b, op) }))
		lists, size = [nWatchKinds][]string{}, 0
	}
	for kind, paths := range t {
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			lists[kind] = append(lists[kind], path)
			if size += frameBytes + len(path); size >= setWatchesBytes {
				flush()
			}
		}
	}
	flush()
	return frames
}

// AddWatch sets a persistent watch on a znode, which need not exist. With
// proto.AddWatchPersistentRecursive the watch covers the znode and all znodes below it. The events
// of changes during a disconnection come before the event of the new connection, if that has
// CaughtUp set. Otherwise, as always with ZooKeeper, they are lost and the caller must read again.
func (c *Client) AddWatch(ctx context.Context, path string, mode proto.AddWatchMode) error {
	kind := watchPersistent
	if mode == proto.AddWatchPersistentRecursive {
		kind = watchRecursive
	}
	// The body of the reply is an int that is always 0.
	return c.doPath(ctx, proto.OpAddWatch, path, func(full string) request {
		return request{body: (&proto.AddWatchRequest{Path: full, Mode: mode}).Append, watch: watchIf(true, full, kind)}
	}, nil)
}

// RemoveWatches removes the Client's watches of a kind on exactly that path and delivers an event
// for each kind removed. ErrNoWatcher means that the server has no such watch. With local, the
// Client forgets the watches even if the connection is lost.
func (c *Client) RemoveWatches(ctx context.Context, path string, kind proto.WatcherType, local bool) error {
	full, err := c.full(proto.OpRemoveWatches, path)
	if err != nil {
		return err
	}
	req := proto.WatchesRequest{Path: full, Type: kind}
	err = c.do(ctx, request{op: proto.OpRemoveWatches, path: path, body: req.Append, settled: func(code proto.ErrCode) {
		if code == proto.OK {
			c.forgetWatches(full, kind)
		}
	}}, nil)
	if local && errors.Is(err, proto.ErrConnectionLoss) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.forgetWatches(full, kind)
		return nil
	}
	return err
}

// CheckWatches returns nil if the server has a watch of the Client of that kind on exactly that
// path, otherwise ErrNoWatcher.
func (c *Client) CheckWatches(ctx context.Context, path string, kind proto.WatcherType) error {
	return c.doPath(ctx, proto.OpCheckWatches, path, func(full string) request {
		return request{body: (&proto.WatchesRequest{Path: full, Type: kind}).Append}
	}, nil)
}

// The event types that only clients have; package proto has those of servers.
const (
	// EventSession is a change of the session's state. It has no path.
	EventSession proto.EventType = -1
	// EventDataWatchRemoved, EventChildWatchRemoved and EventPersistentWatchRemoved follow a
	// successful RemoveWatches.
	EventDataWatchRemoved       proto.EventType = 5
	EventChildWatchRemoved      proto.EventType = 6
	EventPersistentWatchRemoved proto.EventType = 7
)

// Event is a change of the session's state or a watch event.
type Event struct {
	Type  proto.EventType
	State State      // the session's state when the event arrived
	Path  string     // without the chroot; "" if Type is EventSession
	Zxid  proto.Zxid // of the change; proto.NoZxid if the server does not send it
	// CaughtUp is set with State Connected or ReadOnly if persistent watches have missed no change
	// since they were set.
	CaughtUp bool
}

// latest holds the events of the latest change that the server has told of. Another event of the
// same change may be lost with the connection. Then a server sends all of them again, and those
// that came are dropped.
type latest struct {
	zxid   proto.Zxid
	events []Event
	again  []Event // to drop, until the watches are set again
}

// repeated notes an event, and reports whether to drop it.
func (l *latest) repeated(e Event) bool {
	if e.Zxid > l.zxid {
		*l = latest{zxid: e.Zxid}
	}
	if e.Zxid != l.zxid { // of no change
		return false
	}
	if i := slices.Index(l.again, e); i >= 0 {
		l.again = slices.Delete(l.again, i, i+1)
		return true
	}
	l.events = append(l.events, e)
	return false
}

// State is the state of the session.
type State int

// The states. A Client starts in Connecting; the last three are final.
const (
	Connecting State = iota // no connection; only a server can tell whether the session is alive
	Connected
	ReadOnly // connected to a server without a quorum
	AuthFailed
	Expired
	Closed
)

// Ended reports whether the state is final.
func (s State) Ended() bool { return s >= AuthFailed }

// stateNames are the names of each state: in the prompt of ZooKeeper's shell, and in its events.
var stateNames = [...]struct{ prompt, event string }{
	Connecting: {"CONNECTING", "Disconnected"},
	Connected:  {"CONNECTED", "SyncConnected"},
	ReadOnly:   {"CONNECTEDREADONLY", "ConnectedReadOnly"},
	AuthFailed: {"AUTH_FAILED", "AuthFailed"},
	Expired:    {"EXPIRED", "Expired"},
	Closed:     {"CLOSED", "Closed"},
}

// String returns the name that the prompt of ZooKeeper's shell shows.
func (s State) String() string { return stateNames[s].prompt }

// KeeperState returns ZooKeeper's name of the state in events.
func (s State) KeeperState() string { return stateNames[s].event }

// maxEvents is how many events may wait for OnEvent before the connection is no longer read.
const maxEvents = 4096

// eventQueue holds events in order between the connection and OnEvent. Among the events it holds
// the channels of AwaitEvents, each of which is closed when OnEvent has returned from all events
// before the channel.
type eventQueue struct {
	mu     sync.Mutex
	change sync.Cond // signalled when events or closed changes
	events []queuedEvent
	closed bool
	idle   bool // OnEvent has returned from all events
}

// queuedEvent is an event, or a channel to close.
type queuedEvent struct {
	Event
	reached chan struct{}
}

// push appends an event without waiting. After close it does nothing.
func (q *eventQueue) push(e Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.events, q.idle = append(q.events, queuedEvent{Event: e}), false
		q.change.Broadcast()
	}
}

func (q *eventQueue) pushState(s State, caughtUp bool) {
	q.push(Event{Type: EventSession, State: s, Zxid: proto.NoZxid, CaughtUp: caughtUp})
}

// close makes deliver return when the queue is empty.
func (q *eventQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.change.Broadcast()
}

func (q *eventQueue) awaitRoom() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.events) >= maxEvents && !q.closed {
		q.change.Wait()
	}
}

// deliver calls to with each event, in order, until q is closed and empty.
func (q *eventQueue) deliver(to func(Event)) {
	for {
		q.mu.Lock()
		q.idle = len(q.events) == 0 // until the next push
		for len(q.events) == 0 && !q.closed {
			q.change.Wait()
		}
		batch := q.events
		q.events = nil
		q.change.Broadcast()
		q.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		for _, e := range batch {
			if e.reached != nil {
				close(e.reached)
			} else {
				to(e.Event)
			}
		}
	}
}

// AwaitEvents waits until OnEvent has returned from all events that arrived before the call. An
// event arrives before the reply to any later request, so after a request this covers everything
// that happened before it. The error is that of ctx. OnEvent must not call AwaitEvents.
func (c *Client) AwaitEvents(ctx context.Context) error {
	q := &c.events
	q.mu.Lock()
	if q.idle {
		q.mu.Unlock()
		return nil
	}
	reached := make(chan struct{})
	q.events = append(q.events, queuedEvent{reached: reached}) // deliver is not waiting: no signal is needed
	q.mu.Unlock()
	select {
	case <-reached:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
