package barrier

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/calls"
	"github.com/gozkd/gozkd/recipes/internal/holding"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// Leave leaves the barrier and waits until all members that were in have left, but not for members
// that enter later, for the next round. Leave must be called at most once.
//
// When Leave fails, the member has left nevertheless, or its znode is deleted in the background,
// but others may still be in. The reasons are the end of ctx, a lost session, or recipes.ErrNotHeld
// if the member was not in.
func (m *Participant) Leave(ctx context.Context) error {
	if m.Context().Err() != nil {
		lost, err := holding.Release(ctx, m.Hold, "leave barrier") // the znode may exist
		return calls.WithCleanup(lost, err)
	}
	in, cancel := m.Hold.Session().Within(ctx)
	defer cancel()
	l := &leaving{Double: m.double, member: m}
	if err := l.leave(in); err != nil {
		return calls.WithCleanup(err, m.Release(ctx))
	}
	return l.awaitGone(in)
}

// leaving is a call of Leave in progress.
//
// A member newer than the ready znode is not in: the member waits for the next round, or is about
// to find the ready znode and write it again. Leave does not wait for such members, because they
// may wait for this member to enter again.
type leaving struct {
	*Double
	member   *Participant
	ready    *proto.Stat // nil if missing, which only kazoo's members cause
	others   []string    // the members that Leave waits for; sorted
	maxCzxid int64       // newer members are not waited for
	watch    <-chan client.Event
}

// leave makes the member whose name sorts first wait until all other members have left. Every other
// member leaves at once, with a watch on the first.
func (l *leaving) leave(ctx context.Context) error {
	for {
		ready, err := l.client.Exists(ctx, l.readyPath())
		if err != nil {
			return err
		}
		l.ready, l.maxCzxid = ready, math.MaxInt64
		if ready != nil {
			l.maxCzxid = int64(ready.Mzxid)
		}
		gone, err := l.waitToLeave(ctx)
		if gone || err != nil {
			return err
		}
	}
}

// waitToLeave is leave for one version of the ready znode. A result of false without an error means
// that leave must start again.
func (l *leaving) waitToLeave(ctx context.Context) (gone bool, err error) {
	m := l.member
	own := znodepath.Base(m.Path())
	newer := make(map[string]bool)
	for {
		now, err := l.list(ctx)
		if err != nil {
			return false, err
		}
		names := slices.DeleteFunc(now.names, func(name string) bool { return newer[name] })
		i := slices.Index(names, own)
		switch {
		case i < 0 && m.Context().Err() != nil: // leaveLast succeeded, but its answer was lost
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
		_, stat, watch, err := l.client.GetW(ctx, znodepath.Join(l.path, watched))
		switch {
		case errors.Is(err, proto.ErrNoNode):
		case err != nil:
			return false, err
		case int64(stat.Czxid) > l.maxCzxid:
			newer[watched] = true
		case i > 0:
			l.others, l.maxCzxid, l.watch = slices.Delete(names, i, i+1), min(l.maxCzxid, now.pzxid), watch
			return true, m.Release(ctx)
		default:
			if err := calls.Await(ctx, "leave barrier", m.Path(), watch); err != nil {
				return false, err
			}
		}
	}
}

// leaveLast deletes the member together with the ready znode, so that members of the next round
// find no old ready znode.
func (l *leaving) leaveLast(ctx context.Context) (gone bool, err error) {
	m := l.member
	if l.ready == nil {
		return true, m.Release(ctx)
	}
	m.Hold.End()
	_, err = l.client.Multi(ctx,
		client.DeleteOp(m.Path(), -1), client.DeleteOp(l.readyPath(), l.ready.Version))
	return isApplied(ctx, err)
}

func (l *leaving) awaitGone(ctx context.Context) error {
	for len(l.others) > 0 {
		if err := calls.Await(ctx, "leave barrier", l.member.Path(), l.watch); err != nil {
			return err
		}
		for again := true; again; {
			now, err := l.list(ctx)
			if err != nil {
				return err
			}
			if len(now.names) == 0 && now.hasReady && l.ready != nil {
				// The last member died and left the ready znode behind. If this delete fails, the
				// next round recognizes the ready znode as stale.
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

// watchFirst watches the first of the others. again means that the first has left, or must not be
// waited for: it is newer, or has entered again under its old name, as Curator's members do.
func (l *leaving) watchFirst(ctx context.Context) (again bool, err error) {
	if len(l.others) == 0 {
		return false, nil
	}
	_, stat, watch, err := l.client.GetW(ctx, znodepath.Join(l.path, l.others[0]))
	if errors.Is(err, proto.ErrNoNode) || err == nil && int64(stat.Czxid) > l.maxCzxid {
		l.others = l.others[1:]
		return true, nil
	}
	l.watch = watch
	return false, err
}
