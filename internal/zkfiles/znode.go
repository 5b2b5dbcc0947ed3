package zkfiles

import (
	"encoding/binary"
	"hash/crc32"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// Session is an entry of a snapshot's session table. ZooKeeper computes its [Password].
type Session struct {
	ID        proto.SessionID
	TimeoutMs int32
}

// Znode is a znode of a snapshot.
type Znode struct {
	Path string // "/" for the root
	Data []byte // nil: null. Valid until the next znode is read
	ACL  int64  // its key in the table of ACLs; OpenKey is world:anyone with all permissions
	Stat Stat
}

// OpenKey is the key of the open list, which the table does not contain.
const OpenKey = -1

// Stat is the part of a Stat that ZooKeeper stores. Cversion counts the creations of children, and
// is the next sequence number; a client sees 2*Cversion-children. The fields are in the order of
// the encoding.
type Stat struct {
	Czxid, Mzxid                proto.Zxid
	CtimeMs, MtimeMs            int64
	Version, Cversion, Aversion int32
	Owner                       int64 // see Kind
	Pzxid                       proto.Zxid
}

const statBytes = 6*8 + 3*4

func (s *Stat) append(b []byte) []byte {
	b, _ = binary.Append(b, binary.BigEndian, s) // all sizes are fixed
	return b
}

func (s *Stat) decode(b []byte) { _, _ = binary.Decode(b, binary.BigEndian, s) }

// Kind says when ZooKeeper deletes a znode by itself.
type Kind uint8

// The kinds of znodes.
const (
	Persistent Kind = iota // never
	Ephemeral              // with its session
	Container              // after its last child
	TTL                    // when it has no children and was not written for its time to live
)

const (
	containerOwner = -1 << 63
	extendedMask   = 0xff << 56
	ttlFeature     = 0xffff << 40 // these bits are 0
	ttlMask        = 1<<40 - 1
)

// KindOf returns the kind of a znode with that owner: for an ephemeral its session, for a TTL znode
// its time to live in milliseconds. Source: EphemeralType.get.
//
// A session of server 255 is told from a time to live by the 16 bits after the server's number:
// those of a session come from a clock.
func KindOf(owner int64) (kind Kind, session proto.SessionID, ttlMs int64) {
	switch {
	case owner == 0:
		return Persistent, 0, 0
	case owner == containerOwner:
		return Container, 0, 0
	case uint64(owner)&extendedMask == extendedMask && owner&ttlFeature == 0:
		return TTL, 0, owner & ttlMask
	}
	return Ephemeral, proto.SessionID(owner), 0
}

// OwnerOf is the inverse of KindOf.
func OwnerOf(kind Kind, session proto.SessionID, ttlMs int64) int64 {
	switch kind {
	case Ephemeral:
		return int64(session)
	case Container:
		return containerOwner
	case TTL:
		return int64(-1<<56) | ttlMs
	}
	return 0
}

// DigestVersion is that of the digest that this package computes, that of ZooKeeper 3.6 to 3.9.
const DigestVersion = 2

// ZnodeDigest returns a znode's term of ZooKeeper's digest, which is the sum of the terms of all
// znodes modulo 2⁶⁴. Source: DigestCalculator.
func ZnodeDigest(path string, data []byte, s *Stat) uint64 {
	if strings.HasPrefix(path, "/zookeeper/") {
		return 0
	}
	var stat [statBytes]byte
	b := s.append(stat[:0])                                          // where Pzxid is the last field; the digest has it after Mzxid
	crc := crc32.ChecksumIEEE([]byte(strings.TrimSuffix(path, "/"))) // the root is ""
	for _, part := range [][]byte{data, b[:16], b[52:], b[16:52]} {
		crc = crc32.Update(crc, crc32.IEEETable, part)
	}
	return uint64(crc)
}

// Password returns the password of a session. ZooKeeper stores none: it seeds java.util.Random with
// the id. Source: ZooKeeperServer.generatePasswd.
func Password(id proto.SessionID) (passwd [proto.PasswdBytes]byte) {
	const multiplier, mask = 0x5deece66d, 1<<48 - 1
	state := (uint64(id) ^ 0xb3415c00 ^ multiplier) & mask
	for i := range passwd {
		if i%4 == 0 {
			state = (state*multiplier + 0xb) & mask
		}
		passwd[i] = byte(state >> 16 >> (8 * (i % 4)))
	}
	return passwd
}
