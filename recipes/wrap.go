package recipes

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/requesthook"
	"github.com/gozkd/gozkd/internal/wakeup"
	"github.com/gozkd/gozkd/proto"
)

// Conn is a connection of another client library, whose events are of type E. Package gozk makes
// one of go-zookeeper's.
//
// A call blocks until the server answers or the connection gives up on the request. Its error is a
// code of package proto: ErrConnectionLoss if the request may have been applied; or it is
// ErrNoServer or ErrClosed if the request was not sent. Safe for concurrent use.
type Conn[E any] interface {
	Create(path string, data []byte, o client.CreateOptions) (string, error)
	Delete(path string, version int32) error
	Set(path string, data []byte, version int32) (*proto.Stat, error)
	Get(path string, watch bool) ([]byte, *proto.Stat, <-chan E, error)
	Exists(path string, watch bool) (*proto.Stat, <-chan E, error) // nil if there is none
	Children(path string, watch bool) ([]string, *proto.Stat, <-chan E, error)
	Multi(ops []client.Op) ([]client.Result, error)
	Sync(path string) error

	AddAuth(scheme string, auth []byte) error
	// Session returns the session's ID, and the server if the connection has one in this session.
	Session() (id int64, server string)
	// Event converts an event. Events of the session have one of the states client.Connected,
	// Connecting and Expired.
	Event(e E) client.Event
}

// Wrap makes a Client from an existing connection, and returns when conn has answered a request or
// ctx ends. For go-zookeeper conn is gozk.Conn(conn), and events the channel of zk.Connect.
//
//	events   the events of conn; only the Client may read them from now on
//	timeout  the negotiated session timeout, or less. If the value is greater than the negotiated
//	         timeout, the Client may notice a lost session too late.
//
// The Client does not close conn. Prefer Connect, whose promises are stronger:
//
//   - How long a session lives after a reconnect is concluded from the pings of conn, which may be
//     late.
//   - If a session that was declared lost is still alive, Connect's Client closes that session. A
//     wrapped connection keeps the session: the Client deletes the ephemerals that Create and Multi
//     made in it, and continues with a new Session that has the same ID.
//   - While conn has no server, calls end when conn gives up on them, which takes a second or more
//     with go-zookeeper's own host provider. A request whose ctx has ended may still be sent, even
//     in the next session.
//   - All watches fire after a reconnect.
func Wrap[E any](
	ctx context.Context, conn Conn[E], events <-chan E, timeout time.Duration, opts ...Option,
) (*Client, error) {
	cfg, err := newConfig(append(opts, SessionTimeout(timeout)))
	if err != nil {
		return nil, err
	}
	k := newCore(cfg)
	w := &wrapped[E]{k: k, conn: conn, events: events}
	w.watches, w.ephemerals = make(watchTable), make(map[string]struct{})
	k.conn, k.hook = w, requesthook.From(ctx)
	c := &Client{core: k}
	// Ends with the connection or when the Client is closed. Close waits.
	k.loops.Go(w.followEvents)
	if err := k.start(ctx, "wrap"); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	for _, a := range cfg.auth {
		if err := c.retry(ctx, "add auth", a.Scheme, func(ctx context.Context, _ bool) error {
			return k.do(ctx, request{}, func(context.Context) error { return conn.AddAuth(a.Scheme, a.Credential) })
		}); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

type wrapped[E any] struct {
	k      *core
	conn   Conn[E]
	events <-chan E // closed when conn has ended

	mu      sync.Mutex // guards the fields below; never held while waiting
	seen    int64      // the greatest zxid of a Stat
	watches watchTable
	// ephemerals holds the paths of ephemerals of the current session: nobody else can end a
	// session that was declared lost. Some of them may be gone, or may never have existed.
	ephemerals map[string]struct{}
	reconnect  wakeup.Broadcast // sent when the connection is restored
}

// after is called with the result of each request.
func (w *wrapped[E]) after(stat *proto.Stat, err error) error {
	if stat != nil {
		w.mu.Lock()
		w.seen = max(w.seen, int64(stat.Czxid), int64(stat.Mzxid), int64(stat.Pzxid))
		w.mu.Unlock()
	}
	// The connection may have a new session already, whose events arrive later.
	id, _ := w.conn.Session()
	if s := w.k.currentSession(); s != nil && s.id != id {
		s.end(ErrSessionLost)
	}
	return err
}

func (w *wrapped[E]) create(_ context.Context, path string, data []byte, o CreateOptions) (string, error) {
	created, err := w.conn.Create(path, data, nativeOptions(o))
	err = w.after(nil, err)
	switch {
	case err == nil && o.Ephemeral:
		w.foundOwn(created)
	case o.Ephemeral && !o.Sequential && classify(err) == replyLost: // it may exist
		w.foundOwn(path)
	}
	return created, err
}

func (w *wrapped[E]) delete(_ context.Context, path string, version int32) error {
	err := w.after(nil, w.conn.Delete(path, version))
	if err == nil {
		w.forget(path)
	}
	return err
}

func (w *wrapped[E]) set(_ context.Context, path string, data []byte, version int32) (*proto.Stat, error) {
	stat, err := w.conn.Set(path, data, version)
	return stat, w.after(stat, err)
}

func (w *wrapped[E]) sync(_ context.Context, path string) error {
	return w.after(nil, w.conn.Sync(path))
}

// watchTree fails: the methods of Conn set no persistent watches.
func (w *wrapped[E]) watchTree(context.Context, string, bool, func(client.Event)) error {
	return proto.ErrUnimplemented
}

// read asks for a watch only if none is armed. Any change after the answer fires the armed one.
// Otherwise a caller that waits for the same znode again and again, with a context that ends each
// time, would arm many watches: go-zookeeper cannot remove a one-shot watch, and keeps each in a
// list until it fires.
func (w *wrapped[E]) read(_ context.Context, kind readKind, path string, watched bool) (readResult, error) {
	if !watched {
		r, _, err := w.readOnce(kind, path, false)
		return r, err
	}
	w.mu.Lock()
	at, reconnect := w.watches.ask(watchKey{path, kind == readChildren}), w.reconnect.Next()
	armed := at.armed
	w.mu.Unlock()
	r, fires, err := w.readOnce(kind, path, !armed)
	w.mu.Lock()
	defer w.mu.Unlock()
	if fires != nil {
		at.due = func() bool { return wakeup.Fired(fires) }
		// Ends with the watch, the connection or Close. Close waits; k.calls counts the caller.
		w.k.loops.Go(func() { w.forward(at, fires, reconnect) })
	}
	r.watch = w.watches.answered(at, armed || fires != nil)
	return r, err
}

// forward fires a watch when its source does, or when reconnect is closed. After a reconnect
// go-zookeeper re-registers its watches with a zxid that may be too new, so a change between the
// two connections would fire nothing.
func (w *wrapped[E]) forward(at *watch, source <-chan E, reconnect <-chan struct{}) {
	var e client.Event
	select {
	case raw, ok := <-source:
		if ok {
			e = w.conn.Event(raw)
		}
	case <-reconnect:
	case <-w.k.closing:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watches.fire(at, e)
}

func (w *wrapped[E]) signalReconnect() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reconnect.Send()
}

func (w *wrapped[E]) readOnce(kind readKind, path string, watch bool) (r readResult, fires <-chan E, err error) {
	switch kind {
	case readData:
		r.data, r.stat, fires, err = w.conn.Get(path, watch)
	case readExists:
		r.stat, fires, err = w.conn.Exists(path, watch)
	case readChildren:
		r.children, r.stat, fires, err = w.conn.Children(path, watch)
	}
	return r, fires, w.after(r.stat, err)
}

// multi remembers and forgets ephemerals. After a lost answer, those with known names may exist.
func (w *wrapped[E]) multi(_ context.Context, ops []client.Op) ([]client.Result, error) {
	results, err := w.conn.Multi(ops)
	err = w.after(nil, err)
	done := err == nil && len(results) == len(ops)
	for i := range ops {
		switch r := &ops[i].Request; {
		case r.Op == proto.OpDelete && done:
			w.forget(r.Path)
		case r.Mode&proto.ModeEphemeral == 0 || r.Op != proto.OpCreate:
		case done:
			w.foundOwn(results[i].Path)
		case classify(err) == replyLost && r.Mode == proto.ModeEphemeral:
			w.foundOwn(r.Path)
		}
	}
	return results, err
}

func (w *wrapped[E]) seenZxid() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}

func (w *wrapped[E]) foundOwn(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ephemerals[path] = struct{}{}
}

func (w *wrapped[E]) forget(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.ephemerals, path)
}

func (w *wrapped[E]) place() (session int64, server string) {
	if session, server = w.conn.Session(); server == "" {
		w.k.markSuspended() // the connection may have dropped the event
		return 0, ""
	}
	return session, server
}

// heard needs no proof: nothing else tells when the session was opened or resumed.
func (w *wrapped[E]) heard(id int64, at time.Duration, _ bool) {
	k, s := w.k, w.k.currentSession()
	if s == nil || s.id != id || !s.extend(at) {
		if s != nil {
			s.end(ErrSessionLost)
			if s.id == id && w.deleteEphemerals(id) != nil {
				return
			}
		}
		w.mu.Lock()
		clear(w.ephemerals)
		w.mu.Unlock()
		k.setSession(newSession(id, k.clock, at, time.Duration(k.timeout.Load()), k.sessionLost))
	}
	if k.markConnected() {
		if s != nil {
			_, server := w.conn.Session()
			k.cfg.hooks.Reconnect(server)
		}
		w.signalReconnect() // the connection may have dropped the event that said so
	}
}

// followEvents follows the connection's state. Some events may be missing.
func (w *wrapped[E]) followEvents() {
	for {
		select {
		case raw, open := <-w.events:
			s, e := w.k.currentSession(), client.Event{}
			if open {
				e = w.conn.Event(raw)
			}
			switch {
			case !open || e.Type == client.EventSession && e.State == client.Expired:
				if s != nil {
					s.end(ErrSessionLost)
				}
				if !open { // somebody has closed the connection
					return
				}
			case e.Type != client.EventSession:
			case e.State == client.Connected: // only an answer proves that the session is alive
				w.signalReconnect()
				wakeup.Send(w.k.probeSoon)
			case e.State == client.Connecting:
				w.k.markSuspended()
			}
		case <-w.k.closing:
			return
		}
	}
}

// deleteEphemerals deletes the ephemerals of a session that the Client has given up and that the
// connection keeps alive. The error is that of the connection.
func (w *wrapped[E]) deleteEphemerals(session int64) error {
	w.mu.Lock()
	paths := slices.Collect(maps.Keys(w.ephemerals))
	w.mu.Unlock()
	for _, path := range paths {
		stat, _, err := w.conn.Exists(path, false)
		if err == nil && stat != nil && int64(stat.EphemeralOwner) == session {
			err = w.conn.Delete(path, -1)
		}
		if err != nil && classify(err) != answered {
			return err
		}
		w.forget(path)
	}
	return nil
}

// leaveServer does nothing: Conn has no method for it.
func (w *wrapped[E]) leaveServer() {}

// close deletes the ephemerals of the session, which lives on, for about half of limit.
func (w *wrapped[E]) close(s *Session, limit time.Duration) (unanswered int) {
	if s != nil {
		w.k.calls.add()
		// Ends when the connection has answered or given up; the wait below is for it, too.
		go func() {
			defer w.k.calls.done()
			for start := w.k.clock.now(); ; time.Sleep(backoff.First) {
				err := w.deleteEphemerals(s.id)
				if err == nil || classify(err) == stopped || w.k.clock.now()-start > limit/2 {
					return
				}
			}
		}()
	}
	return w.k.calls.wait(limit) + w.k.activeProbes.wait(limit)
}
