package recipes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/requesthook"
	"github.com/gozkd/gozkd/proto"
)

// Conn has the methods of *zk.Conn that recipes use.
//
// A call blocks until the server answers or the connection gives up on the request. Its error is a
// sentinel of package zk or an error of the network. Safe for concurrent use.
type Conn interface {
	Create(path string, data []byte, flags int32, acl []zk.ACL) (string, error)
	CreateContainer(path string, data []byte, flag int32, acl []zk.ACL) (string, error)
	CreateTTL(path string, data []byte, flag int32, acl []zk.ACL, ttl time.Duration) (string, error)
	Delete(path string, version int32) error
	Set(path string, data []byte, version int32) (*zk.Stat, error)
	Get(path string) ([]byte, *zk.Stat, error)
	GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error)
	Exists(path string) (bool, *zk.Stat, error)
	ExistsW(path string) (bool, *zk.Stat, <-chan zk.Event, error)
	Children(path string) ([]string, *zk.Stat, error)
	ChildrenW(path string) ([]string, *zk.Stat, <-chan zk.Event, error)
	Multi(ops ...any) ([]zk.MultiResponse, error)
	Sync(path string) (string, error)

	AddAuth(scheme string, auth []byte) error
	SessionID() int64
	State() zk.State
	Server() string
}

// Wrap makes a Client from an existing connection of go-zookeeper, and returns when conn has
// answered a request or ctx ends.
//
//	events   the channel that zk.Connect returned with conn; only the Client may read it from now on
//	timeout  the negotiated session timeout, or less; zk.Conn does not report it. If the value is
//	         greater than the negotiated timeout, the Client may notice a lost session too late.
//
// The Client does not close conn. Prefer Connect, whose promises are stronger:
//
//   - How long a session lives after a reconnect is concluded from zk's pings, which may be late.
//   - If a session that was declared lost is still alive, Connect's Client closes that session. A
//     wrapped connection keeps the session: the Client deletes the ephemerals that Create and Multi
//     made in it, and continues with a new Session that has the same ID.
//   - While conn has no server, calls end when conn gives up on them, which takes a second or more
//     with zk's own host provider. A request whose ctx has ended may still be sent, even in the
//     next session.
//   - All watches fire after a reconnect.
func Wrap(ctx context.Context, conn Conn, events <-chan zk.Event, timeout time.Duration, opts ...Option) (*Client, error) {
	cfg, err := newConfig(append(opts, SessionTimeout(timeout)))
	if err != nil {
		return nil, err
	}
	k := newCore(cfg)
	w := &wrapped{k: k, conn: conn, events: events, reconnect: make(chan struct{})}
	w.watches, w.ephemerals = make(map[watchKey]armedWatch), make(map[string]struct{})
	k.conn, k.hook = w, requesthook.From(ctx)
	c := &Client{core: k}
	// Ends with the connection or when the Client is closed. Close waits.
	k.loops.Go(w.followEvents)
	if err := k.start(ctx, "wrap"); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	for _, a := range cfg.auth {
		if err := c.retry(ctx, "add auth", a.scheme, func(ctx context.Context, _ bool) error {
			return k.do(ctx, request{}, func(context.Context) error { return wrapError(conn.AddAuth(a.scheme, a.auth)) })
		}); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

// wrapped is the transport of Wrap.
type wrapped struct {
	k      *core
	conn   Conn
	events <-chan zk.Event // closed when conn has ended

	mu      sync.Mutex // guards the fields below; never held while waiting
	seen    int64      // the greatest zxid of a Stat
	watches map[watchKey]armedWatch
	// ephemerals holds the paths of ephemerals of the current session: nobody else can end a
	// session that was declared lost. Some of them may be gone, or may never have existed.
	ephemerals map[string]struct{}
	reconnect  chan struct{} // closed and replaced when the connection is restored
}

// after is called with the result of each request.
func (w *wrapped) after(stat *zk.Stat, err error) error {
	if stat != nil {
		w.mu.Lock()
		w.seen = max(w.seen, stat.Czxid, stat.Mzxid, stat.Pzxid)
		w.mu.Unlock()
	}
	// The connection may have a new session already, whose events arrive later.
	if s := w.k.currentSession(); s != nil && s.id != w.conn.SessionID() {
		s.end(ErrSessionLost)
	}
	return wrapError(err)
}

func (w *wrapped) create(_ context.Context, path string, data []byte, o CreateOptions) (created string, err error) {
	var flags int32
	if o.Ephemeral {
		flags |= zk.FlagEphemeral
	}
	if o.Sequential {
		flags |= zk.FlagSequence
	}
	switch {
	case o.Container:
		created, err = w.conn.CreateContainer(path, data, zk.FlagContainer, o.ACL)
	case o.TTL != 0 && o.Sequential:
		created, err = w.conn.CreateTTL(path, data, zk.FlagPersistentSequentialWithTTL, o.ACL, o.TTL)
	case o.TTL != 0:
		created, err = w.conn.CreateTTL(path, data, zk.FlagTTL, o.ACL, o.TTL)
	default:
		created, err = w.conn.Create(path, data, flags, o.ACL)
	}
	err = w.after(nil, err)
	switch {
	case err == nil && o.Ephemeral:
		w.foundOwn(created)
	case o.Ephemeral && !o.Sequential && classify(err) == replyLost: // it may exist
		w.foundOwn(path)
	}
	return created, err
}

func (w *wrapped) delete(_ context.Context, path string, version int32) error {
	err := w.after(nil, w.conn.Delete(path, version))
	if err == nil {
		w.forget(path)
	}
	return err
}

func (w *wrapped) set(_ context.Context, path string, data []byte, version int32) (*zk.Stat, error) {
	stat, err := w.conn.Set(path, data, version)
	return stat, w.after(stat, err)
}

func (w *wrapped) sync(_ context.Context, path string) error {
	_, err := w.conn.Sync(path)
	return w.after(nil, err)
}

// watchTree fails: the methods of Conn set no persistent watches.
func (w *wrapped) watchTree(context.Context, string, bool, func(zk.Event)) error {
	return proto.ErrUnimplemented
}

func (w *wrapped) read(_ context.Context, kind readKind, path string, watch bool) (r readResult, err error) {
	key := watchKey{path, kind == readChildren}
	if watch {
		if ch := w.lookup(key); ch != nil {
			r, err = w.readOnce(kind, path, false)
			r.watch = ch
			return r, err
		}
	}
	reconnect := w.nextReconnect()
	r, err = w.readOnce(kind, path, watch)
	if r.watch != nil {
		r.watch = w.registerWatch(key, r.watch, reconnect)
	}
	return r, err
}

func (w *wrapped) readOnce(kind readKind, path string, watch bool) (r readResult, err error) {
	switch {
	case kind == readData && watch:
		r.data, r.stat, r.watch, err = w.conn.GetW(path)
	case kind == readData:
		r.data, r.stat, err = w.conn.Get(path)
	case kind == readExists && watch:
		r.exists, r.stat, r.watch, err = w.conn.ExistsW(path)
	case kind == readExists:
		r.exists, r.stat, err = w.conn.Exists(path)
	case watch:
		r.children, r.stat, r.watch, err = w.conn.ChildrenW(path)
	default:
		r.children, r.stat, err = w.conn.Children(path)
	}
	return r, w.after(r.stat, err)
}

// multi remembers and forgets ephemerals. After a lost answer, ephemerals with known names may
// exist.
func (w *wrapped) multi(_ context.Context, ops []any) ([]zk.MultiResponse, error) {
	results, err := w.conn.Multi(ops...)
	err = w.after(nil, err)
	done := err == nil && len(results) == len(ops)
	for i, op := range ops {
		switch op := op.(type) {
		case *zk.CreateRequest:
			switch {
			case done && (op.Flags == zk.FlagEphemeral || op.Flags == zk.FlagEphemeralSequential):
				w.foundOwn(results[i].String)
			case classify(err) == replyLost && op.Flags == zk.FlagEphemeral:
				w.foundOwn(op.Path)
			}
		case *zk.DeleteRequest:
			if done {
				w.forget(op.Path)
			}
		}
	}
	return results, err
}

// wrapError converts an error of go-zookeeper to one that classify knows. go-zookeeper reports a
// lost connection as ErrConnectionClosed for requests that wait for their answer, ErrNoServer for
// requests that were never sent, ErrSessionExpired for requests that waited when the session ended,
// and the plain network error if writing failed. Its other errors become their codes; a code for
// which it has no error is only in the text.
func wrapError(err error) error {
	var (
		netErr net.Error
		errno  syscall.Errno
	)
	for code := proto.ErrThrottledOp; err != nil && code < proto.OK; code++ {
		if errors.Is(code, err) {
			err = code
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, zk.ErrSessionExpired), errors.As(err, &netErr), errors.As(err, &errno), errors.Is(err, io.EOF),
		errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe), errors.Is(err, net.ErrClosed), errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w: %w", proto.ErrConnectionLoss, err)
	}
	if text, ok := strings.CutPrefix(err.Error(), "unknown error: "); ok {
		if code, e := strconv.ParseInt(text, 10, 32); e == nil {
			return proto.ErrCode(code)
		}
	}
	return err
}

func (w *wrapped) seenZxid() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}

func (w *wrapped) foundOwn(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ephemerals[path] = struct{}{}
}

func (w *wrapped) forget(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.ephemerals, path)
}

func (w *wrapped) place() (session int64, server string) {
	if w.conn.State() != zk.StateHasSession {
		w.k.markSuspended() // the connection may have dropped the event
		return 0, ""
	}
	return w.conn.SessionID(), w.conn.Server()
}

// heard needs no proof: nothing else tells when the session was opened or resumed.
func (w *wrapped) heard(id int64, at time.Duration, _ bool) {
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
			k.cfg.hooks.Reconnect(w.conn.Server())
		}
		w.signalReconnect() // go-zookeeper may have dropped the event that said so
	}
}

// followEvents follows the connection's state. Some events may be missing.
func (w *wrapped) followEvents() {
	for {
		select {
		case e, open := <-w.events:
			s := w.k.currentSession()
			switch {
			case !open || e.Type == zk.EventSession && e.State == zk.StateExpired:
				if s != nil {
					s.end(ErrSessionLost)
				}
				if !open { // somebody has closed the connection
					return
				}
			case e.Type != zk.EventSession:
			case e.State == zk.StateHasSession: // only an answer proves that the session is alive
				w.signalReconnect()
				select {
				case w.k.probeSoon <- struct{}{}:
				default:
				}
			case e.State == zk.StateDisconnected, e.State == zk.StateConnecting:
				w.k.markSuspended()
			}
		case <-w.k.closing:
			return
		}
	}
}

// deleteEphemerals deletes the ephemerals of a session that the Client has given up and that the
// connection keeps alive. The error is that of the connection.
func (w *wrapped) deleteEphemerals(session int64) error {
	w.mu.Lock()
	paths := slices.Collect(maps.Keys(w.ephemerals))
	w.mu.Unlock()
	for _, path := range paths {
		_, stat, err := w.conn.Exists(path)
		if err == nil && stat != nil && stat.EphemeralOwner == session {
			err = w.conn.Delete(path, -1)
		}
		if err = wrapError(err); err != nil && classify(err) != answered {
			return err
		}
		w.forget(path)
	}
	return nil
}

// leaveServer does nothing: the methods of Conn do not tell go-zookeeper to do so.
func (w *wrapped) leaveServer() {}

// close deletes the ephemerals of the session, which stays alive with the connection, for about
// half of limit.
func (w *wrapped) close(s *Session, limit time.Duration) (unanswered int) {
	if s != nil {
		w.k.calls.add()
		// Ends when the connection has answered or given up; the wait below is for it, too.
		go func() {
			defer w.k.calls.done()
			for start := w.k.now(); ; time.Sleep(backoff.First) {
				err := w.deleteEphemerals(s.id)
				if err == nil || classify(err) == stopped || w.k.now()-start > limit/2 {
					return
				}
			}
		}()
	}
	return w.k.calls.wait(limit) + w.k.activeProbes.wait(limit)
}
