package datatree

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
)

// Replay applies ZooKeeper's transactions to a tree, as a ZooKeeper server does when it reads its
// files, and computes ZooKeeper's digest of the tree. A transaction is applied verbatim: ZooKeeper
// has checked permissions, versions and quotas before it wrote the transaction.
//
// The state may come from a fuzzy snapshot, which has a part of the transactions already. Therefore
// no transaction fails because of the tree's content. Until the log has been replayed beyond the
// fuzzy range, the invariants D2 and D4 may not hold. See
// docs/adr/0009-state-moves-in-and-out-of-zookeeper.md.
//
// Deterministic, like [Tree.Apply]. Between its calls the tree must not be changed otherwise.
type Replay struct {
	t      *Tree
	digest uint64
	newest proto.Zxid // the highest zxid of a znode in the snapshot
}

// NewReplay continues with a tree: a new one, or one that other replays have made.
func NewReplay(t *Tree) *Replay {
	r := &Replay{t: t}
	for n := range t.znodes.All() {
		r.digest += t.zooKeeperDigest(n)
	}
	return r
}

// Tree returns the tree.
func (r *Replay) Tree() *Tree { return r.t }

// Digest returns ZooKeeper's digest of the tree, of version [zkfiles.DigestVersion].
func (r *Replay) Digest() uint64 { return r.digest }

// Newest returns the highest zxid of a znode that the snapshot brought. If it is above the zxid of
// the last transaction, the snapshot is fuzzy and transactions are missing.
func (r *Replay) Newest() proto.Zxid { return r.newest }

func (s *znodeStore) zooKeeperDigest(n *znode) uint64 {
	rec := s.record(n)
	stat := rec.zooKeeperStat()
	return zkfiles.ZnodeDigest(n.path(), rec.bytes(), &stat)
}

// zooKeeperStat returns the part of a Stat that ZooKeeper stores.
func (r *record) zooKeeperStat() zkfiles.Stat {
	return zkfiles.Stat{
		Czxid: r.czxid, Mzxid: r.mzxid, Pzxid: r.pzxid, CtimeMs: r.ctimeMs, MtimeMs: r.mtimeMs,
		Version: r.version, Cversion: r.cversion, Aversion: r.aversion,
		Owner: zkfiles.OwnerOf(zkfiles.Kind(r.kind), proto.SessionID(r.owner), int64(r.owner)),
	}
}

// setOwner sets kind and owner of a new znode. The session of an ephemeral may be unknown.
func (r *Replay) setOwner(rec *record, owner int64) error {
	kindOf, session, ttlMs := zkfiles.KindOf(owner)
	switch rec.kind = kind(kindOf); rec.kind {
	case ephemeral:
		rec.owner = uint64(session)
		if r.t.sessions[session] == nil {
			r.setSession(session, unknownTimeout)
		}
	case ttl:
		if ttlMs == 0 {
			return fmt.Errorf("its owner %#x means a time to live of 0", uint64(owner))
		}
		rec.owner = uint64(ttlMs)
	}
	return nil
}

// unknownTimeout is the timeout of a session that owns an ephemeral and is in no table: a later
// transaction closes it, or [Replay.Finish] does.
const unknownTimeout = 0

// Load adds the sessions and znodes of a snapshot. It calls each after every znode, and ends with
// the error of each.
func (r *Replay) Load(s *zkfiles.SnapshotReader, each func() error) error {
	for _, session := range s.Sessions {
		r.setSession(session.ID, session.TimeoutMs)
	}
	for z, err := range s.Znodes() {
		if err != nil {
			return err
		}
		if err := r.addZnode(&z, s.ACLs); err != nil {
			return fmt.Errorf("%w: at byte %d: znode %q: %w", zkfiles.ErrDamaged, s.Offset(), z.Path, err)
		}
		if err := each(); err != nil {
			return err
		}
	}
	return nil
}

// setSession adds a session or sets its timeout. The session is connected to no server.
func (r *Replay) setSession(id proto.SessionID, timeoutMs int32) {
	r.t.setSession(sessionRecord{id: id, timeoutMs: timeoutMs, passwd: zkfiles.Password(id)})
}

// unresolvedScheme is the scheme in the list of a znode whose ACL is not in the table of a fuzzy
// snapshot. The list permits nothing to anybody, and the log has the right one.
const unresolvedScheme = "not-in-snapshot"

// addZnode adds a znode of a snapshot. acls is the snapshot's table.
func (r *Replay) addZnode(z *zkfiles.Znode, acls map[int64][]proto.ACL) error {
	t := r.t
	rec := record{
		czxid: z.Stat.Czxid, mzxid: z.Stat.Mzxid, pzxid: z.Stat.Pzxid, ctimeMs: z.Stat.CtimeMs, mtimeMs: z.Stat.MtimeMs,
		version: z.Stat.Version, cversion: z.Stat.Cversion, aversion: z.Stat.Aversion,
	}
	rec.setData(z.Data)
	if z.ACL != zkfiles.OpenKey {
		list, known := acls[z.ACL]
		if !known {
			list = []proto.ACL{{ID: proto.ID{Scheme: unresolvedScheme, ID: strconv.FormatInt(z.ACL, 10)}}}
		}
		rec.acl = r.aclKey(list)
	}
	if err := r.setOwner(&rec, z.Stat.Owner); err != nil {
		return err
	}
	r.newest = max(r.newest, rec.czxid, rec.mzxid, rec.pzxid)
	if protected(z.Path) {
		if rec.kind != persistent {
			return fmt.Errorf("its owner is %#x", uint64(z.Stat.Owner))
		}
		r.replace(t.get(z.Path), &rec)
		t.hashPending()
		return nil
	}
	p := t.get(proto.ParentPath(z.Path))
	switch {
	case p == nil:
		return fmt.Errorf("its parent is not before it")
	case t.get(z.Path) != nil:
		return fmt.Errorf("it comes twice")
	}
	return r.insert(p, z.Path, &rec)
}

// aclKey returns the encoding of a list of ZooKeeper's. To ZooKeeper an empty list is open.
func (r *Replay) aclKey(list []proto.ACL) string {
	if len(list) == 0 {
		return ""
	}
	return r.t.aclKey(list)
}

// Apply applies a transaction. An error means that the transaction is none that ZooKeeper can have
// written; the tree must then not be used.
func (r *Replay) Apply(record *zkfiles.Record) error {
	t := r.t
	if record.Zxid <= t.lastZxid {
		return fmt.Errorf("transaction %v comes after %v", record.Zxid, t.lastZxid)
	}
	t.lastZxid = record.Zxid
	err := r.apply(record, &record.Txn)
	t.hashPending()
	if err != nil {
		return fmt.Errorf("transaction %v: %w", record.Zxid, err)
	}
	return nil
}

func (r *Replay) apply(x *zkfiles.Record, op *zkfiles.Txn) error {
	switch op.Op {
	case proto.OpCreate, proto.OpCreate2:
		owner := int64(0)
		if op.Ephemeral {
			owner = int64(x.Session)
		}
		return r.create(x, op, owner)
	case proto.OpCreateContainer:
		return r.create(x, op, zkfiles.OwnerOf(zkfiles.Container, 0, 0))
	case proto.OpCreateTTL:
		return r.create(x, op, zkfiles.OwnerOf(zkfiles.TTL, 0, op.TTLMs))
	case proto.OpDelete, proto.OpDeleteContainer:
		return r.delete(x.Zxid, op.Path)
	case proto.OpSetData, proto.OpReconfig:
		r.setData(x, op)
	case proto.OpSetACL:
		r.setACL(op)
	case proto.OpCreateSession:
		r.setSession(x.Session, op.TimeoutMs)
	case proto.OpCloseSession:
		return r.closeSession(x.Zxid, x.Session, op.Paths)
	case proto.OpMulti:
		if op.Failed() {
			return nil
		}
		for i := range op.Ops {
			if err := r.apply(x, &op.Ops[i]); err != nil {
				return fmt.Errorf("operation %d of the multi: %w", i, err)
			}
		}
	case proto.OpCheck, proto.OpError:
	default:
		return fmt.Errorf("%v is no transaction", op.Op)
	}
	return nil
}

// create creates a znode. In a fuzzy state the parent may be gone again, or the znode may be there
// already: then only the parent's counter moves forward. Source: DataTree.createNode.
func (r *Replay) create(x *zkfiles.Record, op *zkfiles.Txn, owner int64) error {
	t := r.t
	if err := proto.ValidatePath(op.Path); err != nil {
		return err
	}
	p := t.get(proto.ParentPath(op.Path))
	if p == nil || protected(op.Path) {
		return nil
	}
	parent := t.record(p)
	counter := op.ParentCversion
	if counter == zkfiles.NoCversion {
		counter = parent.cversion + 1
	}
	n := t.get(op.Path)
	if counter > parent.cversion {
		parent.cversion, parent.pzxid = counter, x.Zxid
		r.replace(p, &parent)
	}
	list := r.aclKey(op.ACL)
	if n != nil {
		// The znode that this transaction created had this list, until its first setACL.
		if rec := t.record(n); rec.czxid == x.Zxid && rec.aversion == 0 {
			rec.acl = list
			r.replace(n, &rec)
		}
		return nil
	}
	rec := record{czxid: x.Zxid, mzxid: x.Zxid, pzxid: x.Zxid, ctimeMs: x.TimeMs, mtimeMs: x.TimeMs, acl: list}
	rec.setData(op.Data)
	if err := r.setOwner(&rec, owner); err != nil {
		return err
	}
	return r.insert(p, op.Path, &rec)
}

// delete deletes a znode. In a fuzzy state it may be gone already; its parent's pzxid moves forward
// all the same. Or the path has a later znode, possibly with children: the log creates them again.
// Source: DataTree.deleteNode.
func (r *Replay) delete(zxid proto.Zxid, path string) error {
	t := r.t
	if protected(path) || proto.ValidatePath(path) != nil {
		return fmt.Errorf("it deletes %q", path)
	}
	p := t.get(proto.ParentPath(path))
	if p == nil {
		return nil
	}
	if parent := t.record(p); zxid > parent.pzxid {
		parent.pzxid = zxid
		r.replace(p, &parent)
	}
	if n := t.get(path); n != nil {
		r.removeAll(n)
		t.discard(n)
	}
	return nil
}

// removeAll removes n and everything below it. The caller discards n.
func (r *Replay) removeAll(n *znode) {
	t := r.t
	for _, id := range slices.Clone(t.children(n)) {
		child := t.at(id)
		r.removeAll(child)
		t.discard(child)
	}
	r.digest -= t.zooKeeperDigest(n)
	t.remove(n)
}

func (r *Replay) setData(x *zkfiles.Record, op *zkfiles.Txn) {
	t := r.t
	n := t.get(op.Path)
	if n == nil {
		return
	}
	rec := t.record(n)
	rec.setData(op.Data)
	rec.version, rec.mzxid, rec.mtimeMs = op.Version, x.Zxid, x.TimeMs
	r.replace(n, &rec)
}

func (r *Replay) setACL(op *zkfiles.Txn) {
	n := r.t.get(op.Path)
	if n == nil {
		return
	}
	rec := r.t.record(n)
	rec.acl, rec.aversion = r.aclKey(op.ACL), op.Version
	r.replace(n, &rec)
}

// closeSession removes a session and its ephemerals: those that the transaction names, then those
// that the session still owns. Source: DataTree.killSession.
func (r *Replay) closeSession(zxid proto.Zxid, id proto.SessionID, paths []string) error {
	for _, path := range paths {
		if err := r.delete(zxid, path); err != nil {
			return err
		}
	}
	if r.t.sessions[id] == nil {
		return nil
	}
	for _, path := range r.t.Ephemerals(id, nil) {
		if err := r.delete(zxid, path); err != nil {
			return err
		}
	}
	r.t.dropSession(id)
	return nil
}

func (r *Replay) insert(p *znode, path string, rec *record) error {
	t := r.t
	if t.index.len() >= t.mostZnodes {
		return fmt.Errorf("%q is one more than %d znodes, which is the most", path, t.mostZnodes)
	}
	n := t.newZnode(p, path, rec)
	t.insert(n)
	r.digest += t.zooKeeperDigest(n)
	return nil
}

// replace gives n another record of the same kind and owner.
func (r *Replay) replace(n *znode, rec *record) {
	r.digest -= r.t.zooKeeperDigest(n)
	r.t.replace(n, rec)
	r.digest += r.t.zooKeeperDigest(n)
}
