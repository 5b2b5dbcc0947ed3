package persistentnode

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/backoff"
)

// remove deletes the znode, with retries until the server has answered or the Client is closed.
//
// If the znode is known to exist, the delete is the only request. Otherwise (without a connection,
// after a lost answer, or after an abandoned create) remove checks first whether the znode is still
// ours. The check follows a sync, because another server may lag. The delete is a multi, because a
// plain delete would be repeated without a check.
//
// An ephemeral is deleted only in the session in which it was seen; see inSession.
func (k *maintainer) remove() error {
	// without a name the znode was protected, and Client.Create deletes it
	if k.opts.TTL != 0 || !k.mayExist || k.path == "" {
		return nil
	}
	ctx := context.Background()
	k.mu.Lock()
	s, sure := k.presentIn, k.present && k.isPresent()
	k.mu.Unlock()
	sure = sure && k.isConnected()
	var result error
	backoff.Retry(ctx, func() bool {
		own, err := true, error(nil)
		if !sure {
			s, own, err = k.look(ctx)
		}
		if err == nil && own {
			err = k.delete(ctx, s)
		}
		var e *recipes.Error
		switch {
		case err == nil, errors.Is(err, zk.ErrNoNode):
			return true
		case errors.Is(err, recipes.ErrClosed), errors.As(err, &e) && e.Refused():
			result = k.wrapErr(err)
			return true
		}
		sure = false
		return false
	})
	return result
}

// delete deletes the znode, which was seen in session s.
func (k *maintainer) delete(ctx context.Context, s *recipes.Session) error {
	in, cancel := k.inSession(ctx, s)
	defer cancel()
	_, err := k.client.Multi(in, &zk.DeleteRequest{Path: k.path, Version: -1})
	return err
}

// look reports whether the znode exists and is ours, and in which session.
func (k *maintainer) look(ctx context.Context) (s *recipes.Session, own bool, err error) {
	if err := k.client.Sync(ctx, k.path); err != nil {
		return nil, false, err
	}
	s, err = k.client.AwaitSession(ctx)
	if err != nil {
		return nil, false, err
	}
	stat, err := k.client.Exists(ctx, k.path)
	if err == nil && k.client.Session() != s {
		err = recipes.ErrSessionLost // the Stat may be of another session
	}
	// a znode of an earlier session was deleted with it
	return s, stat != nil && k.isOwn(stat, s), err
}
