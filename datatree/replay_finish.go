package datatree

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// SetZxid sets the zxid of the last transaction that a snapshot surely has. It must not go back.
func (r *Replay) SetZxid(z proto.Zxid) { r.t.lastZxid = max(r.t.lastZxid, z) }

// DropSession closes a session as of the last transaction, which deletes its ephemerals.
func (r *Replay) DropSession(id proto.SessionID) error {
	defer r.t.hashPending()
	return r.closeSession(r.t.lastZxid, id, nil)
}

// Finish ends the replay for a tree that begins an ensemble of its own: the members in
// /zookeeper/config are not ours, the statistics of quotas are counted, and ephemerals whose
// session is unknown are removed, as a starting ZooKeeper does. It returns how many such sessions
// there were. An error says that transactions are missing: the snapshot was fuzzy.
func (r *Replay) Finish() (unknown int, err error) {
	t := r.t
	if r.newest > t.lastZxid {
		return 0, fmt.Errorf("the snapshot has a change of zxid %v, and the last transaction is %v: the log with those in between is missing",
			r.newest, t.lastZxid)
	}
	if err := r.unresolved(); err != nil {
		return 0, err
	}
	for s := range t.Sessions() {
		if s.TimeoutMs == unknownTimeout {
			unknown++
			if err := r.DropSession(s.ID); err != nil {
				return 0, err
			}
		}
	}
	n := t.get(configPath)
	rec := t.record(n)
	rec.setData([]byte{}) // as on a standalone server
	rec.version = -1      // as after every reconfig
	r.replace(n, &rec)
	for _, q := range t.quotas {
		t.writeStats(q)
	}
	return unknown, nil
}

// unresolved returns an error if a znode's ACL was neither in the snapshot nor in the log.
func (r *Replay) unresolved() error {
	for _, a := range r.t.acls.lists {
		if a == nil || len(a.list) != 1 || a.list[0].ID.Scheme != unresolvedScheme {
			continue
		}
		for n := range r.t.znodes.All() {
			if r.t.aclOf(n) == a {
				return fmt.Errorf("%s has the ACL number %s, which is neither in the snapshot nor in the log behind it", n.path(), a.list[0].ID.ID)
			}
		}
	}
	return nil
}

// Keep removes every znode except path, its descendants and ancestors, the znodes that each tree
// has, and the quotas of those that stay. It reports whether there is a znode at path.
func (r *Replay) Keep(path string) bool {
	if r.t.get(path) == nil {
		return false
	}
	r.keep(r.t.root, path)
	return true
}

func (r *Replay) keep(n *znode, path string) {
	t := r.t
	for _, id := range slices.Clone(t.children(n)) {
		child := t.at(id)
		switch name := child.path(); {
		case within(name, path), within(name, quotaPath+path):
			// All of it stays.
		case protected(name), within(path, name), within(quotaPath+path, name):
			r.keep(child, path)
		default:
			r.removeAll(child)
			t.discard(child)
		}
	}
}

// within reports whether path is top or below it.
func within(path, top string) bool {
	return path == top || top == "/" || strings.HasPrefix(path, top) && path[len(top)] == '/'
}
