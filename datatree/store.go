package datatree

import (
	"slices"

	"github.com/gozkd/gozkd/internal/slab"
	"github.com/gozkd/gozkd/proto"
)

// znodeStore holds the znodes, the index by path, the links between parents and children, and the
// ACLs (D1, D7), and answers reads. Sessions, quotas, zxids, digests and the notes of changes are
// the business of [state].
type znodeStore struct {
	root   *znode
	znodes slab.Slab[znode]
	dirs   slab.Slab[dir]
	index  index
	acls   aclTable
	lists  childLists
	pages  *pageIndexes
	buf    []byte // scratch of encodings
}

func newStore(opts Options) znodeStore {
	return znodeStore{
		index: newIndex(),
		acls:  aclTable{numbers: make(map[string]uint32)},
		lists: childLists{limit: opts.ListBytes, tooLong: opts.LongList},
		pages: &pageIndexes{of: make(map[uint32]*pageIndex), from: 2000, chunk: 1024, work: 20_000},
	}
}

// get returns the znode at path, or nil, valid until it is discarded. path is not retained.
func (s *znodeStore) get(path string) *znode { return s.index.get(&s.znodes, path) }

// NumZnodes returns the number of znodes as ZooKeeper counts them, with the root twice.
func (s *znodeStore) NumZnodes() int { return s.index.len() + 1 }

// LongestList returns the bytes of the longest reply to getChildren2 that the tree would have given
// since New or Restore.
func (s *znodeStore) LongestList() int { return s.lists.longest }

// newZnode makes a znode from a record; insert adds the znode to the tree.
func (s *znodeStore) newZnode(parent *znode, path string, r *record) *znode {
	return s.place(parent, s.seal(path, r), r.acl)
}

// place makes a znode from a blob and the encoding of its ACL.
func (s *znodeStore) place(parent *znode, b blob, acl string) *znode {
	id, n := s.znodes.Alloc()
	n.id = id
	n.setBlob(b)
	n.acl = s.acls.retain(acl)
	if parent != nil {
		n.parent = parent.id
	}
	return n
}

func (s *znodeStore) record(n *znode) (r record) {
	s.read(n, &r)
	return r
}

// read sets r, which must be zero, to the record of n. Unlike record it does not scan the ACL.
func (s *znodeStore) read(n *znode, r *record) { n.blob().read(r, len(s.acls.key(n.acl))) }

// sorted returns the znodes with these numbers, sorted by path.
func (s *znodeStore) sorted(ids []znodeID) []*znode {
	znodes := make([]*znode, len(ids))
	for i, id := range ids {
		znodes[i] = s.at(id)
	}
	slices.SortFunc(znodes, byPath)
	return znodes
}

// at returns the znode with a number, which must exist, or nil for 0.
func (s *znodeStore) at(id znodeID) *znode {
	if id == 0 {
		return nil
	}
	return s.znodes.At(id)
}

func (s *znodeStore) parent(n *znode) *znode { return s.at(n.parent) }

// children returns the numbers of n's children, which are read-only, and valid until a change.
func (s *znodeStore) children(n *znode) []znodeID {
	if n.dir == 0 {
		return nil
	}
	return s.dirs.At(n.dir).children
}

func (s *znodeStore) aclOf(n *znode) *acl { return s.acls.at(n.acl) }

func (s *znodeStore) stat(n *znode, r *record) proto.Stat { return r.stat(len(s.children(n))) }
