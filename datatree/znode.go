package datatree

import (
	"fmt"
	"math"
	"strings"
	"unsafe"

	"github.com/gozkd/gozkd/proto"
)

// The znodes that cannot be deleted, besides the root.
const (
	zookeeperPath = "/zookeeper"
	quotaPath     = proto.QuotaRoot
	configPath    = "/zookeeper/config"
)

func protected(path string) bool {
	return path == "/" || path == zookeeperPath || path == quotaPath || path == configPath
}

// kind says when a znode is deleted automatically. Its values are zkfiles.Kind's.
type kind uint8

const (
	persistent kind = iota // never
	ephemeral              // when its session ends
	container              // after its last child
	ttl                    // when it has no children and was not written for its time to live
)

// record is a decoded znode without its path. Its strings share the memory that they were decoded
// from. [znodeStore.seal] encodes a record as a blob; the tree keeps blobs only.
type record struct {
	czxid, mzxid, pzxid proto.Zxid
	ctimeMs, mtimeMs    int64
	owner               uint64 // ephemeral: the session id; ttl: milliseconds; otherwise 0
	data                string
	acl                 string // the encoding of the ACL; "": the open list
	version             int32
	cversion            int32 // number of children created so far; wraps
	aversion            int32
	kind                kind
	null                bool // the data is null, which differs from empty
	sealed              bool // the data belongs to a blob, which another blob can share
}

// bytes returns the data, which must not be changed: nil if null, not nil if empty.
func (r *record) bytes() []byte {
	if r.null {
		return nil
	}
	return bytesOf(r.data)
}

// setData sets the data, which is shared until the record is sealed.
func (r *record) setData(data []byte) { r.data, r.null, r.sealed = textOf(data), data == nil, false }

// znodeID is a znode's number in znodeStore.znodes; 0 is none.
type znodeID = uint32

// maxZnodes is the largest number of znodes; at 200 bytes each they take 200 GB. A Slab has four
// times as many numbers: a multi may remove all znodes and create as many before it frees the
// first. Notes have 31 bits for their number, and a path has at most two.
const maxZnodes = 1<<30 - 1

// znode is a node of the tree and refers to its blob. The index finds znodes by path; children and
// owners refer to a znode by its id.
//
// NB: 40 bytes with one pointer, so that a page of 1024 is exactly five pages of the heap.
type znode struct {
	first    *byte  // of the blob, or the large blob; nil: a free slot
	size     uint32 // of the blob; 0: first is a large blob
	id       znodeID
	parent   znodeID // 0: none, which is the root
	childIdx int32   // index in the parent's children
	ownerIdx int32   // index in session.ephemerals or state.collectable
	dir      uint32  // number in znodeStore.dirs; 0: no children
	acl      uint32  // number in znodeStore.acls
	note     uint32  // number in Changes.notes, possibly of an earlier capture; see noteFresh
}

type dir struct {
	children  []znodeID // unsorted
	nameBytes int       // sum over the children's names
}

func (n *znode) blob() blob { return blobAt(n.first, n.size) }

func blobAt(first *byte, size uint32) blob {
	if size == 0 {
		a := (*largeBlob)(unsafe.Pointer(first))
		return blob{a.text, a}
	}
	return blob{text: unsafe.String(first, int(size))}
}

func (n *znode) setBlob(b blob) {
	if b.large != nil {
		n.first, n.size = (*byte)(unsafe.Pointer(b.large)), 0
		return
	}
	if uint64(len(b.text)) > math.MaxUint32 {
		// Lengths in requests and checkpoints have 31 bits.
		panic(fmt.Sprintf("datatree: a znode of %d bytes without its data", len(b.text)))
	}
	n.first, n.size = unsafe.StringData(b.text), uint32(len(b.text))
}

func (n *znode) path() string { return n.blob().path() }

func (n *znode) name() string { return n.blob().name() }

func (n *znode) record() record { return n.blob().record() }

func (n *znode) kind() kind { return n.blob().kind() }

func byPath(a, b *znode) int { return strings.Compare(a.path(), b.path()) }

func (r *record) stat(children int) (st proto.Stat) {
	r.putStat(&st, children)
	return st
}

// putStat sets *st to the Stat of a znode, field by field: assigning a Stat would make it elsewhere
// and copy it. ZooKeeper counts creations of children and shows creations plus deletions as
// cversion.
func (r *record) putStat(st *proto.Stat, children int) {
	numChildren := int32(children)
	st.Czxid, st.Mzxid, st.Pzxid = r.czxid, r.mzxid, r.pzxid
	st.CtimeMs, st.MtimeMs = r.ctimeMs, r.mtimeMs
	st.Version, st.Cversion, st.Aversion = r.version, 2*r.cversion-numChildren, r.aversion
	st.DataLength, st.NumChildren = int32(len(r.data)), numChildren
	st.EphemeralOwner = 0
	if r.kind == ephemeral {
		st.EphemeralOwner = proto.SessionID(r.owner)
	}
}
