package zkdata

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"slices"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/testkit/zkrecord"
	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
)

const (
	session = 0x100000000000001
	// beganMs is the time of the first transaction, in November 2023.
	beganMs = 1700000000000
	// lastingMs keeps a session alive while a server is looked at.
	lastingMs = 600_000
)

// tenTransactions are the transactions of most directories. Number n has the zxid n.
func tenTransactions() []*zkfiles.Record {
	return records(0,
		zkfiles.Txn{Op: proto.OpCreateSession, TimeoutMs: lastingMs},
		creation("/a", 1),
		creation("/b", 2),
		creation("/a/c", 1),
		zkfiles.Txn{Op: proto.OpSetData, Path: "/a", Data: []byte("changed"), Version: 1},
		zkfiles.Txn{Op: proto.OpCreate, Path: "/e", ACL: proto.OpenACL(), Ephemeral: true, ParentCversion: 3},
		zkfiles.Txn{Op: proto.OpDelete, Path: "/b"},
		zkfiles.Txn{Op: proto.OpError, Err: proto.ErrNoNode},
		creation("/d", 5),
		zkfiles.Txn{Op: proto.OpSetData, Path: "/d", Data: []byte("last"), Version: 1},
	)
}

func creation(path string, cversion int32) zkfiles.Txn {
	return zkfiles.Txn{Op: proto.OpCreate, Path: path, Data: []byte("data of " + path), ACL: proto.OpenACL(), ParentCversion: cversion}
}

// records returns transactions with the zxids after a zxid, and without digests, as before 3.6.
func records(after proto.Zxid, txns ...zkfiles.Txn) (list []*zkfiles.Record) {
	for i, x := range txns {
		z := after + proto.Zxid(i+1)
		list = append(list, &zkfiles.Record{Session: session, Cxid: int32(i), Zxid: z, TimeMs: beganMs + int64(z.Counter()), Txn: x})
	}
	return list
}

// digests adds the digests after the transactions, which servers since 3.6 write.
func digests(list []*zkfiles.Record) []*zkfiles.Record {
	replay := datatree.NewReplay(datatree.New(datatree.Options{}))
	for _, r := range list {
		replayed(replay, r)
		if r.Txn.Op != proto.OpError {
			r.Digest, r.DigestVersion, r.HasDigest = replay.Digest(), zkfiles.DigestVersion, true
		}
	}
	return list
}

func replayed(replay *datatree.Replay, r *zkfiles.Record) {
	if err := replay.Apply(r); err != nil {
		panic(fmt.Sprintf("transaction %v: %v", r.Zxid, err)) // of this package's own
	}
}

// logOf returns a log, which is not preallocated.
func logOf(list []*zkfiles.Record) []byte {
	b := zkfiles.AppendLogHeader(nil)
	for _, r := range list {
		b = zkrecord.AppendToLog(b, r)
	}
	return b
}

// zeros appends what preallocation leaves behind the last record.
func zeros(log []byte) []byte { return append(slices.Clip(log), make([]byte, 1<<16)...) }

// snapshotOf returns the snapshot of the state after transactions, as ZooKeeper before 3.6 does.
func snapshotOf(list []*zkfiles.Record) []byte { return fuzzySnapshotOf(list, 0) }

// fuzzySnapshotOf returns a snapshot that was written while the later transactions were applied:
// its znodes are as they were at the end, and its sessions as at the beginning.
func fuzzySnapshotOf(list []*zkfiles.Record, later int) []byte {
	replay, sessions := datatree.NewReplay(datatree.New(datatree.Options{})), make(map[proto.SessionID]int32)
	for i, r := range list {
		replayed(replay, r)
		if i < len(list)-later {
			switch r.Txn.Op {
			case proto.OpCreateSession:
				sessions[r.Session] = r.Txn.TimeoutMs
			case proto.OpCloseSession:
				delete(sessions, r.Session)
			}
		}
	}
	var table []zkfiles.Session
	for id, timeout := range sessions {
		table = append(table, zkfiles.Session{ID: id, TimeoutMs: timeout})
	}
	tree := replay.Tree()
	b := zkfiles.AppendSnapshotHeader(nil, table, tree.ZooKeeperACLs())
	err := tree.ZooKeeperZnodes(func(z *zkfiles.Znode) error {
		b = z.Append(b)
		return nil
	})
	if err != nil {
		panic("" + err.Error())
	}
	b = zkfiles.AppendTreeEnd(b)
	return zkfiles.AppendSeal(b, adler32.Checksum(b))
}

// withDigest appends what 3.9 writes after the tree: the digest after the transactions, and the
// last zxid.
func withDigest(snapshot []byte, list []*zkfiles.Record) []byte {
	replay := datatree.NewReplay(datatree.New(datatree.Options{}))
	for _, r := range list {
		replayed(replay, r)
	}
	last := list[len(list)-1].Zxid
	b := (&zkfiles.SnapshotDigest{Zxid: last, Version: zkfiles.DigestVersion, Value: replay.Digest()}).Append(slices.Clip(snapshot))
	b = zkfiles.AppendSeal(b, adler32.Checksum(b))
	b = zkfiles.AppendLastZxid(b, last)
	return zkfiles.AppendSeal(b, adler32.Checksum(b))
}

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(b) // into memory
	_ = z.Close()
	return out.Bytes()
}

// snappied returns a file of snappy-java with one block, a literal.
func snappied(b []byte) []byte {
	literal := binary.AppendUvarint(nil, uint64(len(b)))
	literal = binary.LittleEndian.AppendUint16(append(literal, 61<<2), uint16(len(b)-1))
	literal = append(literal, b...)
	out := []byte("\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")
	return append(binary.BigEndian.AppendUint32(out, uint32(len(literal))), literal...)
}

// flipped returns b with a bit changed.
func flipped(b []byte, at int) []byte {
	b = slices.Clone(b)
	b[at] ^= 0x10
	return b
}
