package datatree

import (
	"fmt"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// Options of a tree. The zero value is for a tree without Capture.
type Options struct {
	TrackDirty bool // collect changes for Capture
	// LongList, if not nil, is called when the reply to getChildren2 of a znode becomes longer than
	// ListBytes bytes, also by Restore, and again only after the list was shorter than half of
	// that. It must not use the tree.
	LongList  func(path string, bytes int)
	ListBytes int
}

// Tree is the state. Use [New] or [Restore]; the zero value is not a tree.
//
// Methods that only read may run concurrently with each other, but not with Apply, SetLastZxid or
// Capture.
type Tree struct {
	lastZxid proto.Zxid
	digest   uint64

	root     *znode
	znodes   pool[znode]
	dirs     pool[dir]
	index    index
	sessions map[proto.SessionID]*session
	// collectable lists the containers and TTL znodes, unsorted; znode.ownerIdx is the index.
	collectable []znodeID
	acls        aclTable
	quotas      map[string]*quota
	ensemble    *ensembleRecord // never nil

	lists childLists

	numEphemerals int
	dataSize      int64 // bytes of all paths and data

	dirty *Changes // nil: not tracked

	// The remaining fields are scratch of Apply, kept to reuse their memory.
	events  []Event
	results []proto.MultiResult
	multi   proto.MultiRequest
	dec     jute.Decoder
	buf     []byte
	scratch scratch

	undo      []change
	limit     int  // largest number of znodes, maxZnodes
	inMulti   bool // changes go to the undo log
	keepStats bool // writeStats does nothing, because the stats znodes are restored too
}

// scratch is more scratch of Apply.
type scratch struct {
	path     []byte    // of sequential
	known    Decisions // of the request's caller
	unhashed []*znode  // their large blobs are not part of the digest yet, see hashPending
	nHashed  int       // number of such blobs that were hashed later, for tests
}

// New returns a tree with the znodes that every tree has: /, /zookeeper, /zookeeper/quota and
// /zookeeper/config, all with zxids and times 0.
func New(opts Options) *Tree {
	t := empty(opts)
	t.root = t.newZnode(nil, "/", &record{})
	t.link(t.root)
	t.noteChange(t.root, true)
	for _, path := range []string{zookeeperPath, quotaPath, configPath} {
		var rec record
		if path == configPath {
			// ZooKeeper sets this ACL after it has created the znode, with version -1, as a fresh
			// 3.8.0 shows.
			rec.aversion = -1
			rec.acl = t.aclKey(proto.ReadACL())
		}
		t.insert(t.newZnode(t.get(proto.ParentPath(path)), path, &rec))
	}
	return t
}

// empty returns a tree without a root.
func empty(opts Options) *Tree {
	t := &Tree{
		index:    newIndex(),
		sessions: make(map[proto.SessionID]*session),
		acls:     aclTable{numbers: make(map[string]uint32)},
		quotas:   make(map[string]*quota),
		ensemble: &ensembleRecord{},
		limit:    maxZnodes,
		scratch:  scratch{known: Decisions{most: manyDecisions}},
		lists:    childLists{limit: opts.ListBytes, tooLong: opts.LongList},
	}
	if opts.TrackDirty {
		t.dirty = newChanges()
	}
	return t
}

// get returns the znode at path, or nil. path is not retained. The pointer is valid until the znode
// is discarded.
func (t *Tree) get(path string) *znode { return t.index.get(&t.znodes, path) }

// LastZxid returns the zxid of the last transaction or of a later SetLastZxid.
func (t *Tree) LastZxid() proto.Zxid { return t.lastZxid }

// SetLastZxid advances to z without a transaction, for a new epoch. It panics if z is not above
// LastZxid (D4).
func (t *Tree) SetLastZxid(z proto.Zxid) {
	if z <= t.lastZxid {
		panic(fmt.Sprintf("datatree: D4: zxid %v after %v", z, t.lastZxid))
	}
	t.lastZxid = z
}

// NumZnodes returns the number of znodes as ZooKeeper counts them, with the root twice.
func (t *Tree) NumZnodes() int { return t.index.len() + 1 }

// NumEphemerals returns the number of ephemeral znodes.
func (t *Tree) NumEphemerals() int { return t.numEphemerals }

// LongestList returns the bytes of the longest reply to getChildren2 that the tree would have given
// since New or Restore.
func (t *Tree) LongestList() int { return t.lists.longest }

// ApproximateDataSize returns the bytes of all paths and all data.
func (t *Tree) ApproximateDataSize() int64 { return t.dataSize }
