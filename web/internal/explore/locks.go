package explore

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/subtree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/web/internal/access"
	"github.com/gozkd/gozkd/web/internal/call"
	"github.com/gozkd/gozkd/web/internal/locks"
)

const (
	maxLocks      = 500    // directories that one answer covers
	maxContenders = 20_000 // of one answer
	maxIDBytes    = 1024   // data of a contender that are read
)

type lockRow struct {
	Path   string       `json:"path"`
	Kind   locks.Kind   `json:"kind"`
	Layout string       `json:"layout"`
	Limit  int          `json:"limit,omitempty"` // leases of a semaphore, 0: unknown
	Queue  []contestant `json:"queue"`
}

type contestant struct {
	Path    string `json:"path"`
	Session string `json:"session,omitempty"` // missing: the znode is not ephemeral
	Address string `json:"address,omitempty"`
	Role    string `json:"role,omitempty"`
	Holds   bool   `json:"holds,omitempty"`
	Since   int64  `json:"since"` // in the queue, Unix ms
	ID      string `json:"text,omitempty"`
	Before  []int  `json:"waitsFor,omitempty"` // places in the queue
	Any     bool   `json:"any,omitempty"`
	Suspect string `json:"suspect,omitempty"`
}

type wait struct {
	From string `json:"from"`
	To   string `json:"to"`
	Lock string `json:"lock"`
	Any  bool   `json:"any,omitempty"`
}

type cycle struct {
	Sessions []string `json:"sessions"`
	Waits    []wait   `json:"waits"`
}

type lockList struct {
	Locks     []lockRow `json:"locks"`
	Waits     []wait    `json:"waits"`
	Cycles    []cycle   `json:"cycles"`
	Denied    int       `json:"denied,omitempty"` // directories that the caller may not read
	Truncated bool      `json:"truncated,omitempty"`
}

// locks answers with the locks below root. The ephemeral znodes of the ensemble say where to look;
// the caller's session then reads these directories, so that the ACLs hold.
func (e *explorer) locks(_ http.ResponseWriter, r *http.Request) (any, error) {
	root, err := pathOf(r, "root", "/")
	if err != nil {
		return nil, err
	}
	below := strings.TrimSuffix(root, "/") + "/"
	dirs := make(map[string]bool)
	for _, owned := range e.Server.Ephemerals() {
		for _, p := range owned.Paths {
			if dir, ok := locks.Candidate(p); ok && strings.HasPrefix(dir+"/", below) {
				dirs[dir] = true
			}
		}
	}
	return e.readLocks(r, slices.Sorted(maps.Keys(dirs)))
}

// lock answers with the lock at a path, which may also be that of a semaphore.
func (e *explorer) lock(_ http.ResponseWriter, r *http.Request) (any, error) {
	p, err := pathOf(r, "path", "")
	if err != nil {
		return nil, err
	}
	if p == "/" {
		return e.readLocks(r, nil)
	}
	return e.readLocks(r, []string{p, p + "-__lock__", p + "/leases", p + "/locks"})
}

func (e *explorer) readLocks(r *http.Request, paths []string) (any, error) {
	c := call.Of(r)
	zk, err := c.Client()
	if err != nil {
		return nil, err
	}
	found := &lockList{Locks: []lockRow{}, Waits: []wait{}, Cycles: []cycle{}}
	if len(paths) > maxLocks {
		paths, found.Truncated = paths[:maxLocks], true
	}
	var dirs []locks.Directory
	left := maxContenders
	for _, p := range paths {
		d, err := readDirectory(r.Context(), zk, p, &left)
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
	found.Truncated = found.Truncated || left <= 0
	found.fill(locks.Find(dirs), func() func(int64) string {
		if c.Caller.Local || c.Caller.Role >= access.Admin {
			conns := e.connections()
			return func(id int64) string {
				if c := conns[id]; c != nil {
					return c.Remote
				}
				return ""
			}
		}
		return func(int64) string { return "" }
	}())
	return found, nil
}

// fill converts the locks. address returns the client of a session, if the caller may know.
func (l *lockList) fill(all []locks.Lock, address func(int64) string) {
	for i := range all {
		row := lockRow{Path: all[i].Path, Kind: all[i].Kind, Layout: all[i].Layout, Limit: all[i].Limit, Queue: []contestant{}}
		for _, c := range all[i].Queue {
			q := contestant{Path: c.Path, Role: c.Role, Holds: c.Holds, Since: c.Since, ID: c.ID, Before: c.Before, Any: c.Any, Suspect: c.Suspect}
			if c.Session != 0 {
				q.Session, q.Address = idText(c.Session), address(c.Session)
			}
			row.Queue = append(row.Queue, q)
		}
		l.Locks = append(l.Locks, row)
	}
	for _, w := range locks.Waits(all) {
		if len(l.Waits) == maxRows {
			l.Truncated = true
			break
		}
		l.Waits = append(l.Waits, newWait(w))
	}
	for _, c := range locks.Cycles(all) {
		row := cycle{}
		for _, s := range c.Sessions {
			row.Sessions = append(row.Sessions, idText(s))
		}
		for _, w := range c.Waits {
			row.Waits = append(row.Waits, newWait(w))
		}
		l.Cycles = append(l.Cycles, row)
	}
}

func newWait(w locks.Wait) wait { return wait{idText(w.From), idText(w.To), w.Lock, w.Any} }

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

// readContender reads a child, and returns none if it does not exist. Data that the caller may not
// read are missing.
func readContender(ctx context.Context, zk *client.Client, path, name string) (z locks.Znode, err error) {
	stat, there, err := zk.Exists(ctx, path, false)
	if err != nil || !there {
		return z, err
	}
	z = locks.Znode{Name: name, Session: int64(stat.EphemeralOwner), Czxid: int64(stat.Czxid), Ctime: stat.CtimeMs}
	if stat.DataLength > 0 && stat.DataLength <= maxIDBytes {
		z.Data, _, err = zk.Get(ctx, path, false)
		if errors.Is(err, proto.ErrNoAuth) || errors.Is(err, proto.ErrNoNode) {
			err = nil
		}
	}
	return z, err
}
