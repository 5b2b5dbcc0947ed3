package datatree

import (
	"fmt"
	"math"
	"slices"
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

// record is the part of a znode that stands in a checkpoint, but for its path, taken apart. Strings share the memory of what they were
// read from; [Tree.seal] makes a blob of it, which is what the tree keeps.
type record struct {
	czxid, mzxid, pzxid proto.Zxid
	ctimeMs, mtimeMs    int64
	owner               uint64 // ephemeral: the session id; ttl: milliseconds; else 0
	data                string
	acl                 string // its encoding; "": the open one
	version             int32
	cversion            int32 // children created so far; wraps
	aversion            int32
	kind                kind
	null                bool // the data is null, which is not the same as empty
	sealed              bool // the data is a blob's own piece, so that another blob may have it too
}

// bytes returns the data as a slice that must not be changed: nil if null, not nil if empty.
func (r *record) bytes() []byte {
	if r.null {
		return nil
	}
	return bytesOf(r.data)
}

// setData takes data, which it shares until the record is sealed.
func (r *record) setData(data []byte) { r.data, r.null, r.sealed = textOf(data), data == nil, false }

// znodeID is a znode's number in Tree.znodes. 0 is none.
type znodeID = uint32

// maxZnodes is how many znodes a tree can have; at 200 bytes each they fill 200 GB. A pool has four times as many numbers: a multi may
// remove all znodes and make as many before it lets go of the first ones, and there are two notes of one path at most, whose number has 31 bits.
const maxZnodes = 1<<30 - 1

// znode is the place of a blob in the tree. Lookups by path lead here, and children and owners refer to it by its id.
//
// NB: 40 bytes, of which one pointer: a page of 1024 is exactly five pages of the heap.
type znode struct {
	first    *byte  // of the blob, or the apart of it; nil: a free place
	size     uint32 // of the blob; 0: it has an apart
	id       znodeID
	parent   znodeID // 0: the root has none
	childIdx int32   // place in the parent's children
	ownerIdx int32   // place in session.ephemerals, or in Tree.collectable
	dir      uint32  // number in Tree.dirs; 0: no children
	acl      uint32  // number in Tree.acls
	note     uint32  // number in Changes.notes, perhaps of a former one; the highest bit: made since the last Capture
}

// dir is what only znodes with children have.
type dir struct {
	children  []znodeID // in no order
	nameBytes int       // the sum over the children's names
}

func (n *znode) blob() blob { return blobAt(n.first, n.size) }

// blobAt returns what setBlob stored.
func blobAt(first *byte, size uint32) blob {
	if size == 0 {
		a := (*apart)(unsafe.Pointer(first))
		return blob{a.text, a}
	}
	return blob{text: unsafe.String(first, int(size))}
}

func (n *znode) setBlob(b blob) {
	if b.apart != nil {
		n.first, n.size = (*byte)(unsafe.Pointer(b.apart)), 0
		return
	}
	if uint64(len(b.text)) > math.MaxUint32 {
		panic(fmt.Sprintf("datatree: a znode of %d bytes without its data", len(b.text))) // requests and checkpoints have 31 bits for a length
	}
	n.first, n.size = unsafe.StringData(b.text), uint32(len(b.text))
}

func (n *znode) path() string { return n.blob().path() }

func (n *znode) name() string { return n.blob().name() }

func (n *znode) record() record { return n.blob().record() }

func (n *znode) kind() kind { return n.blob().kind() }

// byPath orders znodes.
func byPath(a, b *znode) int { return strings.Compare(a.path(), b.path()) }

// sorted returns the znodes of these numbers in the order of their paths.
func (t *Tree) sorted(ids []znodeID) []*znode {
	znodes := make([]*znode, len(ids))
	for i, id := range ids {
		znodes[i] = t.at(id)
	}
	slices.SortFunc(znodes, byPath)
	return znodes
}

// at returns a znode that is there, or nil for 0.
func (t *Tree) at(id znodeID) *znode {
	if id == 0 {
		return nil
	}
	return t.znodes.at(id)
}

func (t *Tree) parent(n *znode) *znode { return t.at(n.parent) }

// children returns the list, not to be changed, which holds until the next change.
func (t *Tree) children(n *znode) []znodeID {
	if n.dir == 0 {
		return nil
	}
	return t.dirs.at(n.dir).children
}

func (t *Tree) aclOf(n *znode) *acl { return t.acls.at(n.acl) }

// stat builds what clients see of n, whose record is r.
func (t *Tree) stat(n *znode, r *record) proto.Stat { return r.stat(len(t.children(n))) }

// stat builds what clients see. ZooKeeper counts creates of children, and shows creates plus deletes as cversion.
func (r *record) stat(children int) proto.Stat {
	numChildren := int32(children)
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
