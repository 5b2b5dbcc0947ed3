package persistentnode

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
)

// remove deletes the znode, and tries until the server has answered or the Client is closed.
//
// While it is known to be there, the delete is the only request; without a connection, after an answer that was lost, or a create whose answer nobody
// waited for, it looks first: others may have the name already. The look follows a sync, as another server may not know yet what was applied
// before. The delete is a multi since that is not tried again unseen.
//
// A delete that waits to be sent when the session ends is sent in the next, where an ephemeral of that name is another's. So an ephemeral is
// deleted with a connection only, which the look, too, has shown. What is left is the moment in which the connection breaks before go-zookeeper
// has sent the delete, when it has none again before the session is over: whoever has lost the name then makes its znode again.
func (k *maintainer) remove() error {
	if k.opts.ttl() || !k.mayExist || k.path == "" { // without a name it was protected, and the Client deletes what it may have made
		return nil
	}
	ctx := context.Background()
	k.mu.Lock()
	s, sure := k.presentIn, k.present && k.isPresent()
	k.mu.Unlock()
	if state := k.client.State(); state != recipes.Connected && state != recipes.Reconnected {
		sure = false
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		mine, err := true, error(nil)
		if !sure {
			s, mine, err = k.look(ctx)
		}
		if err == nil && mine {
			err = k.delete(ctx, s)
		}
		var e *recipes.Error
		switch {
		case err == nil, errors.Is(err, zk.ErrNoNode):
			return nil
		case errors.Is(err, recipes.ErrClosed), errors.As(err, &e) && e.Refused():
			return k.wrapErr(err)
		}
		sure = false
		sleep(ctx, pause)
	}
}

// delete deletes the znode; an ephemeral only as long as s lives.
func (k *maintainer) delete(ctx context.Context, s *recipes.Session) error {
	if k.opts.ephemeral() {
		in, cancel := s.Within(ctx)
		defer cancel()
		ctx = in
	}
	_, err := k.client.Multi(ctx, &zk.DeleteRequest{Path: k.path, Version: -1})
	return err
}

// look reports whether the znode is there and ours, and in which session.
func (k *maintainer) look(ctx context.Context) (s *recipes.Session, mine bool, err error) {
	if err := k.client.Sync(ctx, k.path); err != nil {
		return nil, false, err
	}
	s, err = k.client.AwaitSession(ctx)
	if err != nil {
		return nil, false, err
	}
	stat, err := k.client.Exists(ctx, k.path)
	if err == nil && k.client.Session() != s {
		err = recipes.ErrSessionLost // whose was it?
	}
	return s, stat != nil && k.isOwn(stat, s), err // what an earlier session had ended with it
}
