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

// Tree is the state and applies requests to it. Use [New] or [Restore]; the zero value is not a
// tree.
//
// Methods that only read may run concurrently with each other, but not with Apply, SetLastZxid or
// Capture.
//
// A Tree has three layers, each of which knows only those below it: the [znodeStore] keeps and
// reads znodes, the [state] changes them, and the Tree executes requests. Its own fields are
// scratch of Apply, kept to reuse their memory.
type Tree struct {
	state

	events  []Event
	results []proto.MultiResult
	multi   proto.MultiRequest
	dec     jute.Decoder
	path    []byte    // of a sequential znode
	known   Decisions // of the request's caller
}

// state is everything that requests change. Its methods know no requests and check no permissions:
// the Tree has checked before it calls a method that changes something. insert, remove, replace and
// update keep these fields consistent with the znodes (D2, D3, D7).
type state struct {
	znodeStore
	lastZxid proto.Zxid
	digest   uint64 // without the blobs of unhashed
	dataSize int64  // bytes of all paths and data
	weight   int64  // of all znodes, see Weight

	mostZnodes int // maxZnodes

	sessions      map[proto.SessionID]*session
	numEphemerals int
	// collectable lists the containers and TTL znodes, unsorted; znode.ownerIdx is the index.
	collectable []znodeID
	quotas      map[string]*quota
	ensemble    ensembleRecord
	limit       Limit
	singles     map[byte]string // the values of ensemble and limit in a checkpoint; see setSingle
	dirty       *Changes        // nil: not tracked

	undo      []change
	inMulti   bool     // changes go to the undo log
	grown     int64    // bytes that the operations of the multi add, see mayGrow
	keepStats bool     // writeStats does nothing, because the stats znodes are restored too
	unhashed  []*znode // their large blobs are not part of the digest yet, see hashPending
	nHashed   int      // number of such blobs that were hashed later, for tests
}

// New returns a tree with the znodes that every tree has: /, /zookeeper, /zookeeper/quota and
// /zookeeper/config, all with zxids and times 0.
func New(opts Options) *Tree {
	t := empty(opts)
	t.root = t.newZnode(nil, "/", &record{})
	t.link(t.root)
	t.dirty.noteChange(t.root, true)
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

func empty(opts Options) *Tree {
	t := &Tree{known: Decisions{most: manyDecisions}, state: state{
		znodeStore: newStore(opts),
		sessions:   make(map[proto.SessionID]*session),
		quotas:     make(map[string]*quota),
		singles:    make(map[byte]string),
		mostZnodes: maxZnodes,
	}}
	if opts.TrackDirty {
		t.dirty = newChanges()
	}
	return t
}

// LastZxid returns the zxid of the last transaction or of a later SetLastZxid.
func (st *state) LastZxid() proto.Zxid { return st.lastZxid }

// SetLastZxid advances to z without a transaction, for a new epoch. It panics if z is not above
// LastZxid (D4).
func (st *state) SetLastZxid(z proto.Zxid) {
	if z <= st.lastZxid {
		panic(fmt.Sprintf("datatree: D4: zxid %v after %v", z, st.lastZxid))
	}
	st.lastZxid = z
}

// NumEphemerals returns the number of ephemeral znodes.
func (st *state) NumEphemerals() int { return st.numEphemerals }

// ApproximateDataSize returns the bytes of all paths and all data.
func (st *state) ApproximateDataSize() int64 { return st.dataSize }
