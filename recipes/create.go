package recipes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/guid"
	"github.com/gozkd/gozkd/proto"
)

// CreateOptions says how to create a znode: by default, a persistent znode with the Client's ACL.
type CreateOptions struct {
	Ephemeral  bool // the server deletes the znode with the session
	Sequential bool // the server appends a number to the name
	Container  bool // the server deletes the znode some time after its last child is gone
	// TTL, if not 0, makes the server delete the znode when it has no children and nobody has
	// changed it for this time, in whole milliseconds.
	TTL time.Duration
	ACL []proto.ACL // nil means the Client's
	// Parents creates missing parents: as containers if the server has them, otherwise persistent.
	Parents bool
	// Protected puts "_c_<guid>-" before the name, as Curator does. After a lost answer Create
	// finds the znode by that GUID, so the znode is created once. If the caller has stopped
	// waiting, the znode is deleted, unless the Client may not read the parent: then an ephemeral
	// stays until its session ends, and any other znode for good.
	Protected bool
}

// Create creates a znode and returns its path, which differs from the argument if the znode is
// sequential or protected. If Create fails because ctx ended, the request may still be sent, and
// data must not be modified.
//
// When an answer is lost:
//
//   - Protected: Create looks for the znode, and repeats the request only if there is none.
//   - Sequential and not protected: the outcome cannot be known. Create does not retry, and the
//     error's Unknown is set.
//   - An ephemeral of this session that has this data counts as created by this call, although
//     another goroutine of this Client may have created it at that moment.
//   - Otherwise Create repeats the request only if the znode certainly has not been created since;
//     if not, the error's Unknown is set. See Idempotent.
//
// When ctx ends before the answer arrives, the znode may be created nevertheless. Create then
// deletes the znode in the background, unless somebody has changed it. If in addition the answer is
// lost, an unprotected znode stays.
func (c *Client) Create(ctx context.Context, path string, data []byte, o CreateOptions) (created string, err error) {
	k := c.core
	if !k.beginCall(ctx) {
		return "", &Error{"create", path, ErrClosed, false}
	}
	defer k.calls.done()
	if o.Ephemeral && (o.Container || o.TTL != 0) || o.Container && (o.Sequential || o.TTL != 0) {
		return "", &Error{"create", path, errMixedKinds, false}
	}
	if o.TTL != 0 && o.TTL < time.Millisecond {
		why := fmt.Errorf("%w: a TTL of %v is less than a millisecond", ErrArgument, o.TTL)
		return "", &Error{"create", path, why, false}
	}
	if o.ACL == nil {
		o.ACL = k.cfg.acl
	}
	n := &createCall{client: c, path: c.absolute(path), data: nonNil(data), opts: o, before: k.conn.seenZxid()}
	if o.Protected { // findProtected finds the znode by a GUID in its name
		n.prefix = protectedPrefix + guid.New() + "-"
		i := strings.LastIndexByte(n.path, '/') + 1
		n.path = n.path[:i] + n.prefix + n.path[i:]
	}
	err = c.retry(ctx, "create", path, func(ctx context.Context, _ bool) (err error) {
		created, err = n.tryOnce(ctx)
		return err
	})
	var e *Error
	switch {
	case err == nil && o.Ephemeral && ctx.Err() != nil:
		// If the session ended while the request waited to be sent, the request may have been sent
		// in the next session. ctx may be bound to the earlier session, so the znode is not wanted.
		n.undo(created)
		return "", &Error{"create", path, newCtxError(ctx, true), true}
	case err == nil:
		return c.relative(created), nil
	case errors.As(err, &e) && !n.outcomeUnknown && !n.answerLost:
		e.Unknown = false // the lost answer was that of another request
	}
	if n.answerLost && n.opts.Protected { // send handles a request that is still in progress
		n.deleteOrphan()
	}
	return "", err
}

var errMixedKinds = fmt.Errorf("%w: a znode is one of ephemeral, container or with a TTL, and a container is not sequential", ErrArgument)

type createCall struct {
	client         *Client
	path           string // on the server, with the prefix of a protected znode
	prefix         string // "_c_<guid>-" of a protected znode
	data           []byte
	opts           CreateOptions
	before         int64    // a zxid that was seen before the call
	sentIn         *Session // the session before the latest request
	answerLost     bool     // the answer to a create request was lost
	outcomeUnknown bool     // an answer was lost or not awaited
}

func (n *createCall) tryOnce(ctx context.Context) (string, error) {
	before := n.answerLost
	switch {
	case before && n.opts.Protected:
		if found, err := n.findProtected(ctx); err != nil || found != "" {
			return found, ambiguous(err)
		}
	case before && n.opts.Sequential:
		return "", errNotRepeatable
	case before && !n.client.idempotent:
		if found, err := n.resolveLost(ctx); err != nil || found != "" {
			return found, err
		}
	}
	created, err := n.sendWithParents(ctx)
	switch {
	case !before || !n.client.idempotent || n.opts.Protected:
		return created, err
	case errors.Is(err, proto.ErrNodeExists):
		return n.adoptExisting(ctx, err)
	}
	return created, ambiguous(err)
}

func (n *createCall) sendWithParents(ctx context.Context) (string, error) {
	created, err := n.send(ctx)
	parent := n.lastParent()
	for tries := 0; errors.Is(err, proto.ErrNoNode) && parent != "" && tries < parentTries; tries++ {
		if err := n.client.core.makeParents(ctx, parent); err != nil {
			return "", err
		}
		created, err = n.send(ctx)
	}
	return created, err
}

// resolveLost returns the znode's path if the znode is the work of an earlier attempt, "" if the
// request may be repeated, and otherwise an ambiguousError.
func (n *createCall) resolveLost(ctx context.Context) (string, error) {
	k := n.client.core
	err := k.checkNotCreated(ctx, n.path, proto.ParentPath(n.path), n.before)
	exists := errors.Is(err, proto.ErrNodeExists)
	switch u := (*ambiguousError)(nil); {
	case !errors.As(err, &u) || !n.opts.Ephemeral || n.opts.Sequential:
	case exists:
		if created, e := n.adoptExisting(ctx, err); e == nil || classify(e) != answered {
			return created, e
		}
	case n.sentIn != k.currentSession(): // if it was created, it is gone with its session
		return "", nil
	}
	return "", err
}

// send sends the create request. If ctx ends first, the znode is deleted in the background.
func (n *createCall) send(ctx context.Context) (string, error) {
	k := n.client.core
	n.sentIn = k.currentSession()
	created, err := k.create(ctx, n.path, n.data, n.opts, func(created string, err error) {
		switch {
		case err == nil:
			n.undo(created)
		case classify(err) == replyLost && n.opts.Protected:
			n.deleteOrphan()
		}
	})
	lost := classify(err) == replyLost
	n.answerLost = n.answerLost || lost
	n.outcomeUnknown = n.outcomeUnknown || lost || classify(err) == notAwaited
	return created, err
}

// create makes one attempt; see call.
func (k *core) create(ctx context.Context, full string, data []byte, o CreateOptions, onLate func(string, error)) (string, error) {
	r := request{op: "create", path: full, bytes: len(data)}
	return call(ctx, k, r, func(ctx context.Context) (string, error) {
		return k.conn.create(ctx, full, data, o)
	}, onLate)
}

// adoptExisting decides whether the existing znode may be the result of an earlier attempt, and
// returns its path if so.
func (n *createCall) adoptExisting(ctx context.Context, exists error) (string, error) {
	k := n.client.core
	there, err := k.read(ctx, readData, n.path, false)
	switch {
	// its creator cannot be determined
	case errors.Is(err, proto.ErrNoNode), errors.Is(err, proto.ErrNoAuth):
		return "", &ambiguousError{exists}
	case err != nil:
		return "", ambiguous(err)
	case there.stat.Version == 0 && bytes.Equal(there.data, n.data) && n.ownerFits(int64(there.stat.EphemeralOwner)):
		if n.opts.Ephemeral {
			k.conn.foundOwn(n.path)
		}
		return n.path, nil
	case int64(there.stat.Czxid) <= n.before: // no attempt can have been applied
		return "", exists
	}
	// perhaps created by this call, and changed or created again since
	return "", &ambiguousError{exists}
}

// ownerFits reports whether the znode that was requested can have this EphemeralOwner. Containers
// and znodes with a TTL show 0. Source: ZooKeeper DataNode.getClientEphemeralOwner.
func (n *createCall) ownerFits(owner int64) bool {
	if n.opts.Ephemeral {
		return owner == n.client.core.currentSession().ID()
	}
	return owner == 0
}

// undo deletes, in the background, a znode that was created after its caller gave up. A znode whose
// name others may know stays if the znode was changed or has children. An ephemeral of another
// session stays.
func (n *createCall) undo(created string) {
	k, version := n.client.core, int32(0)
	if n.opts.Protected || n.opts.Sequential || n.opts.Ephemeral {
		version = -1
	}
	k.retryInBackground("undo create", created, func(ctx context.Context) error {
		if n.opts.Ephemeral && !n.opts.Protected {
			if mine, err := k.owns(ctx, created); err != nil || !mine {
				return err
			}
		}
		err := k.delete(ctx, created, version)
		switch {
		case errors.Is(err, proto.ErrNoNode), errors.Is(err, proto.ErrBadVersion), errors.Is(err, proto.ErrNotEmpty):
			return nil
		}
		return err
	})
}

// owns reports whether the znode at full is an ephemeral of the connection's session. A sync comes
// first: after a lost answer, the present server may still show a deleted znode.
func (k *core) owns(ctx context.Context, full string) (bool, error) {
	stat, err := k.lookAfterSync(ctx, full)
	session, _ := k.conn.place()
	if err == nil && session == 0 {
		return false, ErrNoServer
	}
	return stat != nil && int64(stat.EphemeralOwner) == session, err
}
