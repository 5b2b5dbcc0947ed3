package explore

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/subtree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/web/internal/locks"
)

const (
	maxLocks      = 500    // directories that one answer covers
	maxContenders = 20_000 // of one answer
	maxIDBytes    = 1024   // data of a contender that are read
)

type lockList struct {
	Locks     []locks.Lock  `json:"locks"`
	Waits     []locks.Wait  `json:"waits"`
	Cycles    []locks.Cycle `json:"cycles"`
	Denied    int           `json:"denied,omitempty"` // directories that the caller may not read
	Truncated bool          `json:"truncated,omitempty"`
}

// locks answers with the locks below root. The ephemeral znodes of the ensemble say where to look;
// the caller's session then reads these directories, so that the ACLs hold.
func (e *explorer) locks(q *request) (any, error) {
	root := q.znode("root", "/")
	below := strings.TrimSuffix(root, "/") + "/"
	dirs := make(map[string]bool)
	for _, owned := range e.server.Facts().Ephemerals() {
		for _, p := range owned.Paths {
			if dir, ok := locks.Candidate(p); ok && strings.HasPrefix(dir+"/", below) {
				dirs[dir] = true
			}
		}
	}
	return e.readLocks(q, slices.Sorted(maps.Keys(dirs)))
}

// lock answers with the lock at a path, which may also be that of a semaphore.
func (e *explorer) lock(q *request) (any, error) {
	p := q.znode("path", "")
	if p == "/" {
		return e.readLocks(q, nil)
	}
	return e.readLocks(q, []string{p, p + "-__lock__", p + "/leases", p + "/locks"})
}

func (e *explorer) readLocks(q *request, paths []string) (any, error) {
	zk, err := q.client()
	if err != nil {
		return nil, err
	}
	found := &lockList{}
	if len(paths) > maxLocks {
		paths, found.Truncated = paths[:maxLocks], true
	}
	var dirs []locks.Directory
	left := maxContenders
	for _, p := range paths {
		d, err := readDirectory(q.Context(), zk, p, &left)
		switch {
		case errors.Is(err, proto.ErrNoAuth):
			found.Denied++
		case errors.Is(err, proto.ErrNoNode):
		case err != nil:
			return nil, err
		default:
			dirs = append(dirs, d)
		}
	}
	found.Locks = locks.Find(dirs)
	if isInsider(q.Call) {
		conns := e.connections()
		for _, l := range found.Locks {
			for i := range l.Queue {
				if c := conns[int64(l.Queue[i].Session)]; c != nil {
					l.Queue[i].Address = c.Remote
				}
			}
		}
	}
	found.Waits, found.Cycles = locks.Waits(found.Locks), locks.Cycles(found.Locks)
	found.Truncated = found.Truncated || left <= 0 || len(found.Waits) > maxRows
	found.Waits = found.Waits[:min(len(found.Waits), maxRows)]
	return found, nil
}

// readDirectory reads a znode and its children. left is how many children may still be read.
func readDirectory(ctx context.Context, zk *client.Client, path string, left *int) (d locks.Directory, err error) {
	names, stat, err := zk.Children(ctx, path, false)
	if err != nil {
		return d, err
	}
	d.Path = path
	if stat.DataLength <= maxIDBytes {
		if d.Data, _, err = zk.Get(ctx, path, false); err != nil {
			return d, err
		}
	}
	slices.Sort(names)
	names = names[:min(len(names), max(*left, 0))]
	*left -= len(names)
	children := make([]locks.Znode, len(names))
	err = subtree.Each(len(names), func(i int) (err error) {
		children[i], err = readContender(ctx, zk, subtree.Join(path, names[i]), names[i])
		return err
	})
	// Those that left the queue meanwhile have no name.
	d.Children = slices.DeleteFunc(children, func(z locks.Znode) bool { return z.Name == "" })
	return d, err
}

// readContender reads a child, none if it does not exist, without data that are not for the caller.
func readContender(ctx context.Context, zk *client.Client, path, name string) (z locks.Znode, err error) {
	stat, there, err := zk.Exists(ctx, path, false)
	if err != nil || !there {
		return z, err
	}
	z = locks.Znode{Name: name, Session: locks.Session(stat.EphemeralOwner), Czxid: int64(stat.Czxid), Ctime: stat.CtimeMs}
	if stat.DataLength > 0 && stat.DataLength <= maxIDBytes {
		z.Data, _, err = zk.Get(ctx, path, false)
		if errors.Is(err, proto.ErrNoAuth) || errors.Is(err, proto.ErrNoNode) {
			err = nil
		}
	}
	return z, err
}
