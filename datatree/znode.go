package datatree

import (
	"strings"
	"unsafe"

	"github.com/gozkd/gozkd/proto"
)

// The znodes that cannot be deleted, besides the root.
const (
	zookeeperPath = "/zookeeper"
	quotaPath     = "/zookeeper/quota"
	configPath    = "/zookeeper/config"
)

// protected reports whether the znode at path cannot be deleted.
func protected(path string) bool {
	return path == "/" || path == zookeeperPath || path == quotaPath || path == configPath
}

// kind says when a znode goes away by itself.
type kind uint8

const (
	persistent kind = iota // never
	ephemeral              // with its session
	container              // when its last child is gone
	ttl                    // when it has no child and was not written for a time
)

// record is the part of a znode that stands in a checkpoint. It is immutable: a change makes a new one, so a checkpoint
// reads old ones while the tree moves on.
//
// NB: 96 bytes, exactly a size class of the allocator. A []byte for data would take it to the next.
type record struct {
	czxid, mzxid, pzxid proto.Zxid
	ctimeMs, mtimeMs    int64
	owner               uint64 // ephemeral: the session id; ttl: milliseconds; else 0
	data                string
	acl                 *acl   // nil: world:anyone:cdrwa
	digest              uint64 // of path and record
	version             int32
	cversion            int32 // children created so far; wraps
	aversion            int32
	kind                kind
	null                bool // the data is null, which is not the same as empty
}

// bytes returns the data as a slice that must not be changed: nil if null, not nil if empty.
func (r *record) bytes() []byte {
	switch {
	case r.null:
		return nil
	case r.data == "":
		return []byte{}
	}
	return unsafe.Slice(unsafe.StringData(r.data), len(r.data))
}

// setData stores a copy of data.
func (r *record) setData(data []byte) { r.data, r.null = string(data), data == nil }

// znode is the place of a record in the tree. Lookups by path lead here, and children and owners refer to it.
//
// NB: 48 bytes, exactly a size class of the allocator.
type znode struct {
	path     string
	rec      *record
	parent   *znode
	dir      *dir  // nil: no children
	childIdx int32 // place in parent.dir.children
	ownerIdx int32 // place in session.ephemerals, or in Tree.collectable
}

// dir is what only znodes with children have.
type dir struct {
	children  []*znode // in no order
	nameBytes int      // the sum over the children's names
}

func (n *znode) name() string { return n.path[strings.LastIndexByte(n.path, '/')+1:] }

// byPath orders znodes.
func byPath(a, b *znode) int { return strings.Compare(a.path, b.path) }

func (n *znode) children() []*znode {
	if n.dir == nil {
		return nil
	}
	return n.dir.children
}

// stat builds what clients see. ZooKeeper counts creates of children, and shows creates plus deletes as cversion.
func (n *znode) stat() proto.Stat {
	r := n.rec
	numChildren := int32(len(n.children()))
	st := proto.Stat{
		Czxid: r.czxid, Mzxid: r.mzxid, Pzxid: r.pzxid,
		CtimeMs: r.ctimeMs, MtimeMs: r.mtimeMs,
		Version: r.version, Cversion: 2*r.cversion - numChildren, Aversion: r.aversion,
		DataLength: int32(len(r.data)), NumChildren: numChildren,
	}
	if r.kind == ephemeral {
		st.EphemeralOwner = proto.SessionID(r.owner)
	}
	return st
}
