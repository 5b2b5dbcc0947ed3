package recipes

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
)

// Mode is the kind of a znode.
type Mode int

// The kinds of znodes.
const (
	Persistent Mode = iota
	PersistentSequential
	Ephemeral
	EphemeralSequential
	Container // deleted by the server some time after its last child is gone
	TTL       // deleted by the server when nobody has changed it for so long and it has no children
	TTLSequential
)

func (m Mode) sequential() bool {
	return m == PersistentSequential || m == EphemeralSequential || m == TTLSequential
}

func (m Mode) ephemeral() bool { return m == Ephemeral || m == EphemeralSequential }

// CreateOptions is how a znode is created. The zero value is a persistent one with the Client's ACL.
type CreateOptions struct {
	Mode Mode
	TTL  time.Duration // of TTL and TTLSequential, in milliseconds
	ACL  []zk.ACL      // nil: the Client's
	// Parents creates the znodes above that are missing: containers where the server has them, else persistent ones.
	Parents bool
	// Protected puts "_c_<guid>-" before the name, as Curator does. After a lost answer the znode is found again by it, so that it is
	// created once; and if nobody waits any more, it is deleted.
	Protected bool
}

// Create creates a znode, and returns its path, which differs from the one that was asked for if it is sequential or protected. data is not
// kept.
//
// When the answer is lost:
//   - protected: the znode is looked for before it is created again;
//   - sequential, not protected: nobody can know, so it is not tried again, and the error's Unknown is set;
//   - else: if it is tried again and the znode is there with this data, never changed, and of this session if ephemeral, that counts as
//     created by this call. Somebody else may have done the same in that moment.
//
// When ctx ends before the answer came, a znode that is created all the same is deleted again in the background, unless somebody has
// changed it meanwhile. One that is neither protected nor answered stays, if it was created.
func (c *Client) Create(ctx context.Context, path string, data []byte, o CreateOptions) (created string, err error) {
	k := c.core
	if !k.beginCall(ctx) {
		return "", &Error{"create", path, ErrClosed, false}
	}
	defer k.calls.done()
	if o.ACL == nil {
		o.ACL = k.cfg.acl
	}
	n := &createCall{client: c, path: c.absolute(path), data: nonNil(data), opts: o}
	if o.Protected {
		n.protect()
	}
	err = c.retry(ctx, "create", path, func(ctx context.Context, _ bool) (err error) {
		created, err = n.tryOnce(ctx)
		return err
	})
	var e *Error
	switch {
	case err == nil && o.Mode.ephemeral() && ctx.Err() != nil:
		// ctx may be that of a session, and the znode the next one's: a request that was not sent in the one is sent in the other.
		late := created // which is a result of this function, and empty when it has returned
		k.background(func(ctx context.Context) { n.undo(ctx, late) })
		return "", &Error{"create", path, newCtxError(ctx, true), true}
	case err == nil:
		return c.relative(created), nil
	case errors.Is(err, errNotRepeatable):
		err = &Error{"create", path, zk.ErrConnectionClosed, true}
	case errors.As(err, &e) && !n.outcomeUnknown && !n.answerLost:
		e.Unknown = false // what was lost was the answer to something else
	}
	n.giveUp()
	return "", err
}

// creation is one Create under way.
type createCall struct {
	client         *Client
	path           string // of the server, with the prefix of a protected one
	prefix         string // "_c_<guid>-" of a protected one
	data           []byte
	opts           CreateOptions
	answerLost     bool // the answer to a request was lost
	outcomeUnknown bool // it was, or is not waited for
}

// try is one try.
func (n *createCall) tryOnce(ctx context.Context) (string, error) {
	before := n.answerLost
	if before {
		switch found, err := n.findEarlier(ctx); {
		case err != nil || found != "":
			return found, err
		}
	}
	created, err := n.send(ctx)
	for tries := 0; errors.Is(err, zk.ErrNoNode) && n.makesParents() && tries < parentTries; tries++ {
		if err := n.client.core.makeParents(ctx, n.ensures()); err != nil {
			return "", err
		}
		created, err = n.send(ctx)
	}
	if before && errors.Is(err, zk.ErrNodeExists) && !n.opts.Mode.sequential() {
		return n.adoptExisting(ctx, err)
	}
	return created, err
}

// send sends the request. If ctx ends before the answer, what comes of it is undone.
func (n *createCall) send(ctx context.Context) (string, error) {
	k := n.client.core
	created, err := call(ctx, k, n.request, func(created string, err error) {
		switch {
		case err == nil:
			k.background(func(ctx context.Context) { n.undo(ctx, created) })
		case classify(err) == replyLost && n.opts.Protected:
			k.background(n.deleteOrphan)
		}
	})
	switch classify(err) {
	case replyLost:
		n.answerLost, n.outcomeUnknown = true, true
		if n.opts.Mode == Ephemeral {
			k.rememberEphemeral(n.path) // it may be there
		}
	case notAwaited:
		n.outcomeUnknown = true
	case answered, notSent, stopped:
		if err == nil && n.opts.Mode.ephemeral() {
			k.rememberEphemeral(created)
		}
	}
	return created, err
}

// request asks the connection.
func (n *createCall) request() (string, error) {
	conn, o := n.client.core.conn, n.opts
	switch o.Mode {
	case Container:
		return conn.CreateContainer(n.path, n.data, zk.FlagContainer, o.ACL)
	case TTL:
		return conn.CreateTTL(n.path, n.data, zk.FlagTTL, o.ACL, o.TTL)
	case TTLSequential:
		return conn.CreateTTL(n.path, n.data, zk.FlagPersistentSequentialWithTTL, o.ACL, o.TTL)
	case PersistentSequential:
		return conn.Create(n.path, n.data, zk.FlagSequence, o.ACL)
	case Ephemeral:
		return conn.Create(n.path, n.data, zk.FlagEphemeral, o.ACL)
	case EphemeralSequential:
		return conn.Create(n.path, n.data, zk.FlagEphemeralSequential, o.ACL)
	}
	return conn.Create(n.path, n.data, zk.FlagPersistent, o.ACL)
}

// find looks for what an earlier try may have created.
func (n *createCall) findEarlier(ctx context.Context) (string, error) {
	switch {
	case n.opts.Protected:
		return n.findProtected(ctx)
	case n.opts.Mode.sequential():
		return "", errNotRepeatable
	}
	return "", nil
}

// adopt takes a znode that is there for the one that an earlier try created, if it may be.
func (n *createCall) adoptExisting(ctx context.Context, exists error) (string, error) {
	k := n.client.core
	there, err := call(ctx, k, func() (readResult, error) { return k.get(n.path) }, nil)
	switch {
	case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrNoAuth): // whose it was can't be seen
		return "", &ambiguousError{exists}
	case err != nil:
		return "", err
	case there.stat.Version != 0: // it may be this one, changed since
		return "", &ambiguousError{exists}
	case !bytes.Equal(there.data, n.data):
		return "", exists
	case n.opts.Mode == Ephemeral && there.stat.EphemeralOwner != k.currentSession().ID():
		return "", exists
	case n.opts.Mode == Persistent && there.stat.EphemeralOwner != 0:
		return "", exists
	}
	if n.opts.Mode.ephemeral() {
		k.rememberEphemeral(n.path)
	}
	return n.path, nil
}

// giveUp deletes in the background what may have been created though the caller is told that it was not. What comes of a request that is
// still under way is undone when its answer comes.
func (n *createCall) giveUp() {
	if n.answerLost && n.opts.Protected {
		n.client.core.background(n.deleteOrphan)
	}
}

// undo deletes a znode that was created too late. Where others may know the name, it stays if it is in use already, and what another session
// has under that name by now is none of ours.
func (n *createCall) undo(ctx context.Context, created string) {
	k, version := n.client.core, int32(0)
	if n.opts.Protected || n.opts.Mode.sequential() || n.opts.Mode.ephemeral() {
		version = -1
	}
	k.retryInBackground(ctx, "undo create", created, func(ctx context.Context) error {
		if n.opts.Mode.ephemeral() && !n.opts.Protected {
			if mine, err := k.owns(ctx, created); err != nil || !mine {
				return err
			}
		}
		err := k.delete(ctx, created, version)
		switch {
		case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNotEmpty):
			return nil
		}
		return err
	})
}

// owns reports whether the znode there is an ephemeral of the connection's session. It asks the server to catch up first: after a lost
// answer another one may still show what is gone.
func (k *core) owns(ctx context.Context, full string) (bool, error) {
	if _, err := call(ctx, k, func() (readResult, error) { return k.sync(full) }, nil); err != nil {
		return false, err
	}
	n, err := call(ctx, k, func() (readResult, error) { return k.exists(full) }, nil)
	return err == nil && n.exists && n.stat.EphemeralOwner == k.conn.SessionID(), err
}
