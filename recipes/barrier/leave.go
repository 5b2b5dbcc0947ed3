package barrier

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// Leave waits until all who are in have come to leave, and leaves. Who comes in after it has left, for the next round, is not waited for.
//
// When it fails, the member is out all the same, or is taken out in the background, and others may still be in: because ctx ended, or
// the session, or with recipes.ErrNotHeld because the member was not in any more. It is called once.
func (m *Participant) Leave(ctx context.Context) error {
	if m.Context().Err() != nil {
		return &recipes.Error{Op: "leave barrier", Path: m.Path(), Err: context.Cause(m.Context())}
	}
	in, cancel := m.Session().Within(ctx)
	defer cancel()
	l := &leaving{Double: m.double, member: m}
	if err := l.leave(in); err != nil {
		if left := m.Release(ctx); left != nil && !errors.Is(left, recipes.ErrOutcomeUnknown) {
			err = errors.Join(err, left)
		}
		return err
	}
	return l.awaitGone(in)
}

// leaving is one Leave under way.
//
// Who is younger than the sign is not in, but waits for the next round, or will find the sign and renew it. So nobody waits for the
// younger ones, who may wait for him to come back.
type leaving struct {
	*Double
	member   *Participant
	ready    *zk.Stat // nil: there is none, which only kazoo's members bring about
	others   []string // who is waited for, as far as is known; sorted
	maxCzxid int64    // none of them was made later
	watch    <-chan zk.Event
}

// leave waits, if the member is the first by name, until it is the last who is in. Else it leaves at once, with a watch on the first.
func (l *leaving) leave(ctx context.Context) error {
	for {
		sign, err := l.client.Exists(ctx, l.readyPath())
		if err != nil {
			return err
		}
		l.ready, l.maxCzxid = sign, math.MaxInt64
		if sign != nil {
			l.maxCzxid = sign.Mzxid
		}
		gone, err := l.waitToLeave(ctx)
		if gone || err != nil {
			return err
		}
	}
}

// awaitTurn is leave as long as the sign stays. False and no error: look again.
func (l *leaving) waitToLeave(ctx context.Context) (gone bool, err error) {
	m := l.member
	own := znodepath.Base(m.Path())
	younger := make(map[string]bool)
	for {
		now, err := l.list(ctx)
		if err != nil {
			return false, err
		}
		names := slices.DeleteFunc(now.names, func(name string) bool { return younger[name] })
		i := slices.Index(names, own)
		switch {
		case i < 0 && m.Context().Err() != nil: // leaveLast was not told that it had succeeded
			return true, nil
		case i < 0:
			return false, &recipes.Error{Op: "leave barrier", Path: m.Path(), Err: recipes.ErrNotHeld}
		case len(names) == 1:
			return l.leaveLast(ctx)
		}
		watched := names[0]
		if i == 0 {
			watched = names[len(names)-1]
		}
		_, stat, fires, err := l.client.GetW(ctx, znodepath.Join(l.path, watched))
		switch {
		case errors.Is(err, zk.ErrNoNode):
		case err != nil:
			return false, err
		case stat.Czxid > l.maxCzxid:
			younger[watched] = true
		case i > 0:
			l.others, l.maxCzxid, l.watch = slices.Delete(names, i, i+1), min(l.maxCzxid, now.pzxid), fires
			return true, m.Release(ctx)
		default:
			if err := l.awaitWatch(ctx, fires); err != nil {
				return false, err
			}
		}
	}
}

// leaveLast leaves, and takes the sign away in the same step: so that nobody finds it who comes next.
func (l *leaving) leaveLast(ctx context.Context) (gone bool, err error) {
	m := l.member
	if l.ready == nil {
		return true, m.Release(ctx)
	}
	m.End()
	_, err = l.client.Multi(ctx,
		&zk.DeleteRequest{Path: m.Path(), Version: -1}, &zk.DeleteRequest{Path: l.readyPath(), Version: l.ready.Version})
	if isChanged(err) || repeatable(ctx, err) {
		return false, nil
	}
	return err == nil, err
}

// awaitGone waits until all others have gone.
func (l *leaving) awaitGone(ctx context.Context) error {
	for len(l.others) > 0 {
		if err := l.awaitWatch(ctx, l.watch); err != nil {
			return err
		}
		for again := true; again; {
			now, err := l.list(ctx)
			if err != nil {
				return err
			}
			if len(now.names) == 0 && now.hasReady && l.ready != nil {
				// The last one died instead of taking it away. If this fails, those who come next see that it is old.
				_ = l.client.Delete(ctx, l.readyPath(), l.ready.Version)
			}
			l.others = slices.DeleteFunc(l.others, func(name string) bool { return !slices.Contains(now.names, name) })
			if again, err = l.watchFirst(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// watchFirst watches the first of the others, if there is one. True: it has gone meanwhile, or is none: it was younger, or has come in again,
// as Curator's members do, who have one name for all rounds.
func (l *leaving) watchFirst(ctx context.Context) (again bool, err error) {
	if len(l.others) == 0 {
		return false, nil
	}
	_, stat, fires, err := l.client.GetW(ctx, znodepath.Join(l.path, l.others[0]))
	if errors.Is(err, zk.ErrNoNode) || err == nil && stat.Czxid > l.maxCzxid {
		l.others = l.others[1:]
		return true, nil
	}
	l.watch = fires
	return false, err
}

// await waits until a watch fires.
func (l *leaving) awaitWatch(ctx context.Context, fires <-chan zk.Event) error {
	select {
	case <-fires:
		return nil
	case <-ctx.Done():
		return &recipes.Error{Op: "leave barrier", Path: l.member.Path(), Err: contend.ContextError(ctx)}
	}
}
