package barrier

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// readyName is the znode that is the sign that the barrier is open. All other children are members.
const readyName = "ready"

// memberName is what members' znodes are called, after the prefix that Create gives them. Curator and kazoo take any name, and sort by it.
const memberName = "member"

// Double is a barrier that members enter together and leave together: each waits on entering until so many are in, and on leaving until all
// have left. Then it can be entered again. Safe for concurrent use; who enters several times at once is as many members.
type Double struct {
	client  *recipes.Client
	path    string
	members int
	id      string
}

// NewDouble returns the double barrier at path. It asks the server nothing.
//
//	members  how many must be in before it opens, at least 1. It is a threshold: when it is open, more may enter, at once.
//	id       what this member says of itself to those who look from outside
func NewDouble(c *recipes.Client, path string, members int, id string) *Double {
	if members < 1 {
		panic("barrier: a double barrier has at least one member")
	}
	return &Double{c, path, members, id}
}

// Member is one who is in a Double. Its Context ends when it is not any more, or may not be: then those who leave don't wait for it. The
// tokens of one round are less than those of the next, if all waited in Leave. Release leaves without waiting for the others.
type Participant struct {
	*recipes.Hold
	double *Double
}

// Enter enters, and waits until so many members are in; when it is open already, and somebody is in since then, that is at once. Each Member
// must be left or released.
//
// When Enter fails, the member is not in. If the answers did not come before ctx ended, it is taken out in the background, and counts
// until then. errors.Is(err, recipes.ErrSessionLost): the session is over, and with it the member; it may enter again.
func (d *Double) Enter(ctx context.Context) (*Participant, error) {
	s, err := d.client.AwaitSession(ctx)
	if err != nil {
		return nil, err
	}
	e := &entering{Double: d, session: s}
	in, cancel := s.Within(ctx)
	defer cancel()
	if err := e.enter(in); err != nil {
		return nil, e.giveUp(ctx, err)
	}
	return &Participant{d.client.Hold(s, e.ownPath, e.pzxid), d}, nil
}

// With enters, runs f, and leaves. f's ctx has the values of ctx, and ends with it and when the member is not in any more. If f panics, the
// others are not waited for.
func (d *Double) With(ctx context.Context, f func(ctx context.Context) error) error {
	m, err := d.Enter(ctx)
	if err != nil {
		return err
	}
	done := false
	defer func() {
		if !done {
			_ = m.Release(ctx) // it goes on in the background, and f's panic is what matters
		}
	}()
	in, cancel := m.Within(ctx)
	defer cancel()
	err = f(in)
	done = true
	return errors.Join(err, m.Leave(ctx))
}

// entry is one Enter under way.
type entering struct {
	*Double
	session *recipes.Session
	ownPath string // the path of the member's znode, once it is made
	pzxid   int64
}

// enter makes the member's znode, and waits for a sign that is younger. Who opens the barrier gives the sign, and who finds one that is valid
// renews it: so it is younger than all who are in with it, and one that is older than all who are in is left over from those who died.
func (e *entering) enter(ctx context.Context) (err error) {
	e.ownPath, err = e.client.Create(ctx, znodepath.Join(e.path, memberName), []byte(e.id),
		recipes.CreateOptions{Mode: recipes.Ephemeral, Protected: true, Parents: true})
	if err != nil {
		return err
	}
	var old *zk.Stat // a sign that says nothing
	for judged := false; ; {
		// Reads of this session know at least what was there when the member's znode was made.
		sign, fires, err := e.client.ExistsW(ctx, e.readyPath())
		switch {
		case err != nil:
			return err
		case judged && sign != nil && (old == nil || old.Mzxid != sign.Mzxid):
			return nil // given after this member came in
		case !judged && sign != nil:
			v, err := e.checkReady(ctx, sign)
			if v == readyValid || err != nil {
				return err
			}
			if v == readyChanged {
				continue
			}
		}
		judged, old = true, sign
		if open, again, err := e.open(ctx, sign); open || err != nil {
			return err
		} else if again {
			continue
		}
		select {
		case event := <-fires:
			if event.Type == zk.EventNodeCreated && sign == nil { // else that of the sign which is there, told late
				return nil
			}
		case <-ctx.Done():
			return &recipes.Error{Op: "enter barrier", Path: e.path, Err: contend.ContextError(ctx)}
		}
	}
}

// verdict is what a sign says to who finds it on entering.
type readyCheck int

const (
	readyValid   readyCheck = iota // the barrier is open, and the member is in
	readyStale                     // those for whom it was given are gone
	readyChanged                   // it is not there any more, or another
)

// judge looks whether anybody is in for whom a sign was given, and then renews it, in one step with looking that he still is.
func (e *entering) checkReady(ctx context.Context, sign *zk.Stat) (readyCheck, error) {
	names, err := e.list(ctx)
	if err != nil {
		return readyChanged, err
	}
	members, err := contend.Read(ctx, e.client, e.paths(names))
	if err != nil {
		return readyChanged, err
	}
	older := func(m recipes.Contender) bool { return m.Zxid < sign.Mzxid }
	i := slices.IndexFunc(members, older)
	switch {
	case i < 0:
		return readyStale, nil
	case slices.ContainsFunc(members, func(m recipes.Contender) bool { return older(m) && m.Path == e.ownPath }):
		return readyValid, nil
	}
	ok, err := e.writeReady(ctx, []string{e.ownPath, members[i].Path}, sign)
	if ok {
		return readyValid, nil
	}
	return readyChanged, err
}

// open gives the sign if enough members are in, in one step with looking that they are. again: something has changed meanwhile.
func (e *entering) open(ctx context.Context, sign *zk.Stat) (open, again bool, err error) {
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
	open, err = e.writeReady(ctx, e.paths(chosen), sign)
	return open, !open, err
}

// give gives the sign, or renews the one that is there, if all of paths are there. False and no error: something is not as it was.
func (e *entering) writeReady(ctx context.Context, paths []string, sign *zk.Stat) (bool, error) {
	var ops []any
	for _, path := range paths {
		ops = append(ops, &zk.CheckVersionRequest{Path: path, Version: -1})
	}
	if sign == nil {
		ops = append(ops, &zk.CreateRequest{Path: e.readyPath()})
	} else {
		ops = append(ops, &zk.SetDataRequest{Path: e.readyPath(), Version: sign.Version})
	}
	_, err := e.client.Multi(ctx, ops...)
	if isChanged(err) || repeatable(ctx, err) {
		return false, nil
	}
	return err == nil, err
}

// isChanged reports whether a multi was refused because something is not as it was.
func isChanged(err error) bool {
	return errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrBadVersion)
}

// list returns those who are in, and fails with recipes.ErrNotHeld if this member is not.
func (e *entering) list(ctx context.Context) ([]string, error) {
	l, err := e.Double.list(ctx)
	e.pzxid = l.pzxid
	if err == nil && !slices.Contains(l.names, znodepath.Base(e.ownPath)) {
		err = &recipes.Error{Op: "enter barrier", Path: e.ownPath, Err: recipes.ErrNotHeld}
	}
	return l.names, err
}

// giveUp takes the member out because of err.
func (e *entering) giveUp(ctx context.Context, err error) error {
	if e.ownPath == "" || e.session.Context().Err() != nil { // Create undoes what came of it; or it goes with its session
		return err
	}
	if left := e.client.DeleteGuaranteed(ctx, e.ownPath); left != nil && !errors.Is(left, recipes.ErrOutcomeUnknown) {
		return errors.Join(err, left)
	}
	return err
}

func (d *Double) readyPath() string { return znodepath.Join(d.path, readyName) }

// listing is who is in.
type memberList struct {
	names    []string // sorted, as all sort them
	hasReady bool     // there is one
	pzxid    int64    // of the last change
}

func (d *Double) list(ctx context.Context) (memberList, error) {
	names, stat, err := d.client.Children(ctx, d.path)
	switch {
	case errors.Is(err, zk.ErrNoNode): // a container goes when it is empty
		return memberList{}, nil
	case err != nil:
		return memberList{}, err
	}
	slices.Sort(names)
	l := memberList{names, false, stat.Pzxid}
	if i, found := slices.BinarySearch(names, readyName); found {
		l.names, l.hasReady = slices.Delete(names, i, i+1), true
	}
	return l, nil
}

func (d *Double) paths(names []string) []string {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = znodepath.Join(d.path, name)
	}
	return paths
}
