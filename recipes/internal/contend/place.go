// Package contend makes recipes wait for their turn. Each contender has an ephemeral sequential
// znode in a directory, and the sequence numbers are the order in which contenders are served.
// Contenders of Curator and kazoo share the line: only the ten digits at the end of a name count.
//
// Invariants:
//   - L1 A contender whose turn has come has seen, in one state of the directory, its own znode and
//     no znode to wait for.
//   - L2 The token of a turn is greater than the token of every earlier turn that had to end first.
//   - L3 A waiting contender watches one znode. The end of a turn wakes only the contenders whose
//     rule names that turn's znode.
//   - L4 A contender that gave up, or whose session has ended, leaves no znode.
package contend

import (
	"context"
	"fmt"

	"github.com/gozkd/gozkd/internal/sequence"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/calls"
	"github.com/gozkd/gozkd/recipes/internal/coalesce"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// Rule returns which znode's deletion a contender waits for.
//
//	names   the sequential children of the directory, in order; not to be modified
//	own     the index of the contender's znode
//	before  the name of the znode to wait for; "" if the contender's turn has come
//
// A rule may only depend on names before own, because later contenders cannot matter.
type Rule func(names []string, own int) (before string)

// Exclusive is the rule of a mutex: a contender waits for the contender before it.
func Exclusive(names []string, own int) string {
	if own == 0 {
		return ""
	}
	return names[own-1]
}

// Place is a place in line. Its methods must be called by one goroutine at a time.
type Place struct {
	client  *recipes.Client
	session *recipes.Session
	dir     string
	path    string
}

// errRoot: the root has children of many kinds, some of which could look like contenders.
var errRoot = fmt.Errorf("contenders cannot stand in line below the root: choose a path of its own: %w", proto.ErrBadArguments)

// Join appends a place to the line of dir, with a znode "_c_<guid>-<name><number>" that contains
// data, which lock.Explain shows. Missing parents are created. If Join fails, it leaves no znode.
func Join(ctx context.Context, c *recipes.Client, dir, name string, data []byte) (*Place, error) {
	if dir == "/" {
		return nil, &recipes.Error{Op: "join", Path: dir, Err: errRoot}
	}
	s, err := c.AwaitSession(ctx)
	if err != nil {
		return nil, err
	}
	in, cancel := s.Within(ctx)
	defer cancel()
	path, err := c.Create(in, znodepath.Join(dir, name), data, recipes.CreateOptions{Ephemeral: true, Sequential: true, Protected: true, Parents: true})
	if err != nil {
		return nil, err
	}
	return &Place{client: c, session: s, dir: dir, path: path}, nil
}

// Session returns the session that owns the place.
func (p *Place) Session() *recipes.Session { return p.session }

// Await waits until the contender's turn has come. When Await fails, the place has been given up.
//
// If the error is recipes.ErrSessionLost or recipes.ErrNotHeld while ctx is alive, the place was
// lost, and the caller may join again.
func (p *Place) Await(ctx context.Context, rule Rule) (*recipes.Hold, error) {
	in, cancel := p.session.Within(ctx)
	defer cancel()
	for {
		held, before, err := p.check(in, rule)
		if held != nil {
			return held, nil
		}
		if err == nil {
			_, err = AwaitChange(in, p.client, p.path, znodepath.Join(p.dir, before), nil)
		}
		if err != nil {
			return nil, calls.WithCleanup(err, p.Leave(ctx))
		}
	}
}

// Try returns nil if the contender's turn has not come. The place is kept unless Try fails.
func (p *Place) Try(ctx context.Context, rule Rule) (*recipes.Hold, error) {
	in, cancel := p.session.Within(ctx)
	defer cancel()
	held, _, err := p.check(in, rule)
	if err != nil {
		return nil, calls.WithCleanup(err, p.Leave(ctx))
	}
	return held, nil
}

// Leave gives up the place. If ctx ends first, that continues in the background; see
// recipes.Client.DeleteGuaranteed.
func (p *Place) Leave(ctx context.Context) error {
	if p.session.Context().Err() != nil {
		return nil // the server deletes the znode before the Client has another session
	}
	return p.client.DeleteGuaranteed(ctx, p.path)
}

// check reads the line once, and returns a Hold if the contender's turn has come, and otherwise the
// name of the znode to wait for.
func (p *Place) check(ctx context.Context, rule Rule) (*recipes.Hold, string, error) {
	line, err := readLine(ctx, p.client, p.dir)
	if IgnoreMissing(err) != nil {
		return nil, "", err
	}
	own := -1
	if err == nil { // if the directory is missing, so is the place
		own = sequence.Index(line.names, znodepath.Base(p.path))
	}
	if own < 0 {
		return nil, "", &recipes.Error{Op: "wait in line", Path: p.path, Err: recipes.ErrNotHeld}
	}
	before := rule(line.names, own)
	if before != "" {
		return nil, before, nil
	}
	// Every znode that this contender had to wait for is gone from this state. Its deletion raised
	// Pzxid, so Pzxid is greater than its token.
	turn := recipes.HoldSpec{Session: p.session, Path: p.path, Token: int64(line.stat.Pzxid)}
	return p.client.NewHold(turn), "", nil
}

// AwaitChange waits until the znode at path changes or is deleted, or wake delivers (woken). waiter
// is the path that an error names. The watch is on the data and not on the existence, because an
// exists watch on a missing znode would stay armed.
func AwaitChange(ctx context.Context, c *recipes.Client, waiter, path string, wake <-chan struct{}) (woken bool, err error) {
	_, _, fires, err := c.GetW(ctx, path)
	if err != nil {
		return false, IgnoreMissing(err)
	}
	select {
	case <-fires:
		return false, nil
	case <-wake:
		return true, nil
	case <-ctx.Done():
		return false, &recipes.Error{Op: "wait in line", Path: waiter, Err: calls.ContextError(ctx)}
	}
}

type line struct {
	names []string // the sequential children, in order
	stat  *proto.Stat
}

type linesKey struct{}

// readLine returns a state of dir no older than the call. The contenders of a Client share reads.
func readLine(ctx context.Context, c *recipes.Client, dir string) (line, error) {
	lines := recipes.Shared(c, linesKey{}, func() *coalesce.Calls[line] { return &coalesce.Calls[line]{} })
	call, err := lines.Ask(dir, func(run func(context.Context)) error { return c.Background(ctx, run) },
		func(ctx context.Context) (line, error) {
			children, stat, err := c.Children(ctx, dir)
			return line{sequence.Sequential(children), stat}, err
		})
	if err != nil {
		return line{}, err
	}
	if err := calls.Await(ctx, "children", dir, call.Done); err != nil {
		return line{}, err
	}
	return call.Value, call.Err
}
