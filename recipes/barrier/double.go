package barrier

import (
	"context"
	"errors"
	"slices"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/calls"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/holding"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// readyName is the child that exists while the barrier is open. All other children are members.
const readyName = "ready"

// memberName ends the names of members' znodes, after the prefix of protected znodes. Curator and
// kazoo accept any name, and sort by name.
const memberName = "member"

// Double is a barrier that members enter together and leave together: Enter waits until the
// required number of members is in, and Leave until all have left. After that, the next round
// begins. Safe for concurrent use; each call of Enter makes a member of its own.
type Double struct {
	client  *recipes.Client
	path    string
	members int
	id      string
}

// NewDouble returns the double barrier at path.
//
//	members  how many members must be in before the barrier opens, at least 1; further
//	         members enter at once while the barrier is open
//	id       the data of the member's znode
func NewDouble(c *recipes.Client, path string, members int, id string) *Double {
	if members < 1 {
		panic("barrier: a double barrier needs at least one member")
	}
	return &Double{c, path, members, id}
}

// Participant is a member that has entered a Double. Its Context ends when the member is no longer
// in, or may not be: with Leave or Release, when the session ends, or when the znode is deleted.
// The other members then no longer wait for this member. If all members leave with Leave, the
// tokens of a round are smaller than those of the next. Release leaves without waiting for the
// others.
type Participant struct {
	*recipes.Hold
	double *Double
}

// Enter enters the barrier and waits until the barrier is open. If the barrier is open already, and
// at least one of its members is still in, Enter does not wait. Leave or Release must be called for
// the Participant.
//
// When Enter fails, the member is not in. If ctx ended, its znode may be deleted in the background,
// and counts as a member until then. After recipes.ErrSessionLost the caller may enter again.
func (d *Double) Enter(ctx context.Context) (*Participant, error) {
	s, err := d.client.AwaitSession(ctx)
	if err != nil {
		return nil, err
	}
	e := &entering{Double: d}
	in, cancel := s.Within(ctx)
	defer cancel()
	if err := e.enter(in); err != nil {
		if e.ownPath == "" { // not created, or deleted by Create
			return nil, err
		}
		return nil, calls.Undo(ctx, d.client, s, err, e.ownPath)
	}
	return &Participant{d.client.NewHold(recipes.HoldSpec{Session: s, Path: e.ownPath, Token: e.pzxid}), d}, nil
}

// With enters, runs f, and leaves. The context of f has the values of ctx, and ends with ctx or
// when the member is no longer in. If f panics, With does not wait for the other members.
func (d *Double) With(ctx context.Context, f func(ctx context.Context) error) error {
	if err := holding.CheckFunc(f == nil); err != nil {
		return err
	}
	m, err := d.Enter(ctx)
	if err != nil {
		return err
	}
	done := false
	defer func() {
		if !done {
			_ = m.Release(ctx) // f's panic matters more than the error
		}
	}()
	in, cancel := m.Within(ctx)
	defer cancel()
	err = f(in)
	done = true
	return errors.Join(err, m.Leave(ctx))
}

type entering struct {
	*Double
	ownPath string // the member's znode; "" before it is created
	pzxid   int64
}

// enter creates the member's znode and waits for a ready znode that is newer. The member that opens
// the barrier writes the ready znode, and each member that finds a valid ready znode writes it
// again. So a valid ready znode is newer than every member that is in, and a ready znode older than
// all members was left by a group that crashed.
func (e *entering) enter(ctx context.Context) (err error) {
	e.ownPath, err = e.client.Create(ctx, znodepath.Join(e.path, memberName), []byte(e.id),
		recipes.CreateOptions{Ephemeral: true, Protected: true, Parents: true})
	if err != nil {
		return err
	}
	var stale *proto.Stat // a ready znode that was found stale
	for checked := false; ; {
		// A read in this session shows at least the state in which the member's znode was created.
		ready, watch, err := e.client.ExistsW(ctx, e.readyPath())
		switch {
		case err != nil:
			return err
		case checked && ready != nil && (stale == nil || int64(stale.Mzxid) != int64(ready.Mzxid)):
			return nil // written after this member entered
		case !checked && ready != nil:
			v, err := e.checkReady(ctx, ready)
			if v == readyValid || err != nil {
				return err
			}
			if v == readyChanged {
				continue
			}
		}
		checked, stale = true, ready
		if open, again, err := e.open(ctx, ready); open || err != nil {
			return err
		} else if again {
			continue
		}
		select {
		case event := <-watch:
			// otherwise a late event of the ready znode that was seen
			if event.Type == proto.EventCreated && ready == nil {
				return nil
			}
		case <-ctx.Done():
			return &recipes.Error{Op: "enter barrier", Path: e.path, Err: calls.ContextError(ctx)}
		}
	}
}

type readyCheck int

const (
	readyValid   readyCheck = iota // the barrier is open, and the member is in
	readyStale                     // all members from before its last write are gone
	readyChanged                   // deleted or written meanwhile
)

// checkReady looks for a member older than the ready znode. If there is such a member, checkReady
// writes the ready znode again, in a multi with a check that this member is still in.
func (e *entering) checkReady(ctx context.Context, ready *proto.Stat) (readyCheck, error) {
	names, err := e.list(ctx)
	if err != nil {
		return readyChanged, err
	}
	members, err := contend.ReadChildren(ctx, e.client, e.path, names)
	if err != nil {
		return readyChanged, err
	}
	older := func(m recipes.Contender) bool { return m.Zxid < int64(ready.Mzxid) }
	i := slices.IndexFunc(members, older)
	switch {
	case i < 0:
		return readyStale, nil
	case slices.ContainsFunc(members, func(m recipes.Contender) bool { return older(m) && m.Path == e.ownPath }):
		return readyValid, nil
	}
	ok, err := e.writeReady(ctx, []string{znodepath.Base(e.ownPath), znodepath.Base(members[i].Path)}, ready)
	if ok {
		return readyValid, nil
	}
	return readyChanged, err
}

// open writes the ready znode if enough members are in, in a multi with a check that they are.
// again means that something has changed meanwhile.
func (e *entering) open(ctx context.Context, ready *proto.Stat) (open, again bool, err error) {
	names, err := e.list(ctx)
	if err != nil || len(names) < e.members {
		return false, false, err
	}
	own := znodepath.Base(e.ownPath)
	chosen := []string{own}
	for _, name := range names {
		if name != own && len(chosen) < e.members {
			chosen = append(chosen, name)
		}
	}
	open, err = e.writeReady(ctx, chosen, ready)
	return open, !open, err
}

// writeReady creates or sets the ready znode if all members called names exist. The result is false
// without an error if something has changed.
func (e *entering) writeReady(ctx context.Context, names []string, ready *proto.Stat) (bool, error) {
	var ops []client.Op
	for _, name := range names {
		ops = append(ops, client.CheckOp(znodepath.Join(e.path, name), -1))
	}
	if ready == nil {
		ops = append(ops, client.CreateOp(e.readyPath(), nil, client.CreateOptions{}))
	} else {
		ops = append(ops, client.SetOp(e.readyPath(), nil, ready.Version))
	}
	_, err := e.client.Multi(ctx, ops...)
	return isApplied(ctx, err)
}

// isApplied returns false without an error if a multi failed because the state was not as expected,
// or must be looked at.
func isApplied(ctx context.Context, err error) (bool, error) {
	if errors.Is(err, proto.ErrNoNode) || errors.Is(err, proto.ErrNodeExists) || errors.Is(err, proto.ErrBadVersion) || repeatable(ctx, err) {
		return false, nil
	}
	return err == nil, err
}

// list returns the members, and fails with recipes.ErrNotHeld if this member is not among them.
func (e *entering) list(ctx context.Context) ([]string, error) {
	l, err := e.Double.list(ctx)
	e.pzxid = l.pzxid
	if err == nil && !slices.Contains(l.names, znodepath.Base(e.ownPath)) {
		err = &recipes.Error{Op: "enter barrier", Path: e.ownPath, Err: recipes.ErrNotHeld}
	}
	return l.names, err
}

func (d *Double) readyPath() string { return znodepath.Join(d.path, readyName) }

type memberList struct {
	names    []string // of the members; sorted, as every client sorts them
	hasReady bool     // the ready znode exists
	pzxid    int64    // of the parent
}

func (d *Double) list(ctx context.Context) (memberList, error) {
	names, stat, err := d.client.Children(ctx, d.path)
	if err != nil {
		return memberList{}, contend.IgnoreMissing(err) // the server deletes an empty container
	}
	slices.Sort(names)
	l := memberList{names, false, int64(stat.Pzxid)}
	if i, found := slices.BinarySearch(names, readyName); found {
		l.names, l.hasReady = slices.Delete(names, i, i+1), true
	}
	return l, nil
}
