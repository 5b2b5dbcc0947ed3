package shell

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/internal/subtree"
	"github.com/gozkd/gozkd/internal/wakeup"
)

func runAddAuth(ctx context.Context, c *call) error {
	var credential []byte
	if len(c.args) > 1 {
		credential = []byte(c.args[1])
	}
	if err := c.zk.AddAuth(ctx, c.args[0], credential); err != nil {
		return err
	}
	c.auths = append(c.auths, client.Auth{Scheme: c.args[0], Credential: credential})
	return nil
}

func runWhoAmI(ctx context.Context, c *call) error {
	ids, err := c.zk.WhoAmI(ctx)
	if err != nil {
		return err
	}
	type identity struct {
		Scheme string `json:"scheme"`
		User   string `json:"user"`
	}
	var list []identity
	text := "Auth scheme: User\n"
	for _, id := range ids {
		list = append(list, identity{id.Scheme, id.User})
		text += fmt.Sprintf("%s: %s\n", id.Scheme, id.User)
	}
	return c.print(list, text)
}

func runEphemerals(ctx context.Context, c *call) error {
	path := "/"
	if len(c.args) > 0 {
		path = c.args[0]
	}
	paths, err := c.zk.Ephemerals(ctx, path)
	if err != nil {
		return err
	}
	return c.print(paths, "["+strings.Join(paths, ", ")+"]\n")
}

func runCount(ctx context.Context, c *call) error {
	n, err := c.zk.ChildrenCount(ctx, c.args[0])
	if err != nil {
		return err
	}
	return c.print(struct {
		Path  string `json:"path"`
		Count int    `json:"count"`
	}{c.args[0], n}, fmt.Sprintln(n))
}

// syncTimeout bounds how long sync waits for the leader.
const syncTimeout = 30 * time.Second

func runSync(ctx context.Context, c *call) error {
	path := c.args[0]
	if err := checkPath(path); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	_, err := c.zk.Sync(ctx, path)
	if e, ok := errors.AsType[*client.Error](err); ok && ctx.Err() == nil {
		c.note(fmt.Sprintf("Sync has failed. rc=%d", int32(e.Code)))
		return errFailed
	}
	if err != nil {
		return err
	}
	return c.print(map[string]string{"path": path}, "Sync is OK\n")
}

func runVersion(_ context.Context, c *call) error {
	if len(c.args) > 0 {
		return errUsage
	}
	return c.print(map[string]string{"version": cli.Version()}, "ZooKeeper CLI version: "+cli.Version()+"\n")
}

// event passes an event to the running watch, or prints it, on the client's goroutine.
func (s *Shell) event(e client.Event) {
	if to := s.watching.Load(); to != nil && to.put(e) {
		return
	}
	if s.printWatches.Load() {
		s.printEvent(e)
	}
}

// eventName returns ZooKeeper's name of an event's type.
func eventName(e client.Event) string {
	switch e.Type {
	case client.EventSession:
		return "None"
	case client.EventDataWatchRemoved:
		return "DataWatchRemoved"
	case client.EventChildWatchRemoved:
		return "ChildWatchRemoved"
	case client.EventPersistentWatchRemoved:
		return "PersistentWatchRemoved"
	}
	return e.Type.String()
}

const maxQueuedEvents = 1 << 16

// eventQueue holds events until a running watch prints them. put never blocks, because a running
// command waits for the client's goroutine: if the queue is full, events are dropped.
type eventQueue struct {
	path      string
	recursive bool

	ready chan struct{} // capacity 1: holds a value after put

	mu      sync.Mutex // guards the fields below
	events  []client.Event
	dropped bool // events after these were dropped
}

func newEventQueue(path string, recursive bool) *eventQueue {
	return &eventQueue{path: path, recursive: recursive, ready: make(chan struct{}, 1)}
}

// covers reports whether an event belongs to the watch.
func (q *eventQueue) covers(e client.Event) bool {
	return e.Type == client.EventSession || e.Path == q.path || q.recursive && subtree.Within(e.Path, q.path)
}

// put adds an event if the watch covers the event, and reports whether it does.
func (q *eventQueue) put(e client.Event) bool {
	if !q.covers(e) {
		return false
	}
	q.mu.Lock()
	if len(q.events) < maxQueuedEvents || e.Type == client.EventSession { // session events are few
		q.events = append(q.events, e)
	} else {
		q.dropped = true
	}
	q.mu.Unlock()
	wakeup.Send(q.ready)
	return true
}

func (q *eventQueue) take() (events []client.Event, dropped bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	events, dropped = q.events, q.dropped
	q.events, q.dropped = nil, false
	return events, dropped
}

// next waits for events and takes them. If ctx has ended, it returns none.
func (q *eventQueue) next(ctx context.Context) (events []client.Event, dropped bool) {
	for {
		if events, dropped = q.take(); len(events) > 0 {
			return events, dropped
		}
		select {
		case <-q.ready:
		case <-ctx.Done():
			return nil, false
		}
	}
}
