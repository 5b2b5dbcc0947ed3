package datatree

import (
	"fmt"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// Options of a tree. The zero value is for a tree that is never captured.
type Options struct {
	TrackDirty bool // note what changes, for Capture
}

// Tree is the state. Its zero value is of no use: see [New] and [Restore].
//
// Methods that only read may run concurrently with each other, not with Apply, SetLastZxid or Capture.
type Tree struct {
	lastZxid proto.Zxid
	digest   uint64

	root     *znode
	znodes   pool[znode]
	dirs     pool[dir]
	index    index
	sessions map[proto.SessionID]*session
	// collectable lists the containers and TTL znodes, in no order; znode.ownerIdx is the place in it.
	collectable []znodeID
	acls        aclTable
	quotas      map[string]*quota
	ensemble    *ensembleRecord // never nil

	numEphemerals int
	dataSize      int64 // bytes of all paths and data

	dirty *Changes // nil: not tracked

	// The rest is scratch of Apply, kept between calls for its memory alone.
	events  []Event
	results []proto.MultiResult
	multi   proto.MultiRequest
	dec     jute.Decoder
	buf     []byte
	path    []byte // of sequential

	undo      []change
	limit     int  // of znodes: maxZnodes
	inMulti   bool // primitives write the undo log
	keepStats bool // the stats of quotas are not written anew: who puts records back has these too
}

// New returns a tree with the znodes that every tree has: /, /zookeeper, /zookeeper/quota and /zookeeper/config, all
// with zxids and times 0.
func New(opts Options) *Tree {
	t := empty(opts)
	t.root = t.newZnode(nil, "/", &record{})
	t.link(t.root)
	t.noteChange(t.root, true)
	for _, path := range []string{zookeeperPath, quotaPath, configPath} {
		var rec record
		if path == configPath {
			// ZooKeeper sets this one's ACL after it made it, with -1 for the version. A fresh 3.8.0 shows it.
			rec.aversion = -1
			rec.acl = t.aclKey(proto.ReadACL())
		}
		t.insert(t.newZnode(t.get(proto.ParentPath(path)), path, &rec))
	}
	return t
}

// empty returns a tree without even a root.
func empty(opts Options) *Tree {
	t := &Tree{
		index:    newIndex(),
		sessions: make(map[proto.SessionID]*session),
		acls:     aclTable{numbers: make(map[string]uint32)},
		quotas:   make(map[string]*quota),
		ensemble: &ensembleRecord{},
		limit:    maxZnodes,
	}
	if opts.TrackDirty {
		t.dirty = newChanges()
	}
	return t
}

// get returns the znode at path, or nil. The path is not kept. The pointer holds until the znode is discarded.
func (t *Tree) get(path string) *znode { return t.index.get(&t.znodes, path) }

// LastZxid returns the zxid of the last transaction, or what SetLastZxid set after it.
func (t *Tree) LastZxid() proto.Zxid { return t.lastZxid }

// SetLastZxid moves on to z without a transaction: a new epoch begins. It panics if z is not above LastZxid (D4).
func (t *Tree) SetLastZxid(z proto.Zxid) {
	if z <= t.lastZxid {
		panic(fmt.Sprintf("datatree: D4: zxid %v after %v", z, t.lastZxid))
	}
	t.lastZxid = z
}

// NumZnodes returns the number of znodes as ZooKeeper counts them: the root twice.
func (t *Tree) NumZnodes() int { return t.index.len() + 1 }

// NumEphemerals returns the number of ephemeral znodes.
func (t *Tree) NumEphemerals() int { return t.numEphemerals }

// ApproximateDataSize returns the bytes of all paths and all data.
func (t *Tree) ApproximateDataSize() int64 { return t.dataSize }
