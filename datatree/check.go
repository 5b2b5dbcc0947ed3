package datatree

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gozkd/gozkd/proto"
)

// Check returns every violation of the invariants, or nil. It computes the digest from scratch,
// walks the whole tree, and must not run concurrently with anything else.
func (st *state) Check() error {
	c := checker{t: st, owned: make(map[znodeID]bool), refs: make(map[uint32]int)}
	c.walk()
	c.sessions()
	c.ensemble()
	c.owners()
	c.quotas()
	c.pools()
	c.totals()
	return errors.Join(c.broken...)
}

type checker struct {
	t      *state
	broken []error

	digest        uint64
	numZnodes     int
	dataSize      int64
	weight        int64
	numEphemerals int
	owned         map[znodeID]bool // listed with a session or in collectable
	refs          map[uint32]int   // by number
	dirs          int
}

// maxBroken bounds the report, because one cause can affect every znode.
const maxBroken = 20

func (c *checker) say(format string, args ...any) {
	if len(c.broken) < maxBroken {
		c.broken = append(c.broken, fmt.Errorf("datatree: "+format, args...))
	}
}

func (c *checker) walk() {
	t := c.t
	for _, n := range slices.SortedFunc(t.znodes.All(), byPath) {
		c.place(n)
		c.record(n)
	}
	if t.root == nil || t.get("/") != t.root {
		c.say("D1: the root is not in the index")
	}
	for _, path := range []string{zookeeperPath, quotaPath, configPath} {
		if t.get(path) == nil {
			c.say("D1: %s is gone", path)
		}
	}
}

// place checks that n's parent and index in the parent match its path, and checks n's children.
func (c *checker) place(n *znode) {
	t, path := c.t, n.path()
	switch {
	case t.znodes.Peek(n.id) != n:
		c.say("D7: %q does not have number %d", path, n.id)
	case t.get(path) != n:
		c.say("D1: %q is not found by its path", path)
	case path == "/":
		if n.parent != 0 {
			c.say("D1: the root has a parent")
		}
	case n.parent == 0 || t.parent(n) != t.get(proto.ParentPath(path)):
		c.say("D1: %q does not have its parent", path)
	default:
		siblings := t.children(t.parent(n))
		if int(n.childIdx) >= len(siblings) || siblings[n.childIdx] != n.id {
			c.say("D1: %q is not at place %d of its parent", path, n.childIdx)
		}
	}
	if err := proto.ValidatePath(path); err != nil {
		c.say("D1: %w", err)
	}
	nameBytes := 0
	for _, id := range t.children(n) {
		child := t.znodes.Peek(id)
		if child == nil || child.first == nil {
			c.say("D1: %q lists number %d, which is no znode's", path, id)
			continue
		}
		nameBytes += len(child.name())
		if t.get(child.path()) != child || child.parent != n.id {
			c.say("D1: %q lists %q, which is not its child", path, child.path())
		}
	}
	if n.dir == 0 {
		return
	}
	c.dirs++
	if d := t.dirs.At(n.dir); d.nameBytes != nameBytes || nameBytes == 0 {
		c.say("D3: %q counts %d bytes of names, they are %d", path, d.nameBytes, nameBytes)
	}
	if n.kind() == ephemeral {
		c.say("D2: %q is ephemeral and has children", path)
	}
}

func (c *checker) record(n *znode) {
	t, path, r := c.t, n.path(), n.record()
	fresh := t.seal(path, &r)
	if b := n.blob(); fresh.text != b.text || fresh.hash() != b.hash() {
		c.say("D3: %q is %.50q with hash %#x, its record makes %.50q with hash %#x", path, b.value(), b.hash(), fresh.value(), fresh.hash())
	}
	if size := int64(len(path) + len(r.data)); n.blob().dataSize() != size {
		c.say("D3: %q counts %d bytes of path and data, they are %d", path, n.blob().dataSize(), size)
	}
	if err := r.plausible(t.lastZxid); err != nil {
		c.say("D2, D4: %q: %w", path, err)
	}
	if r.null && r.data != "" {
		c.say("D3: %q has null data of %d bytes", path, len(r.data))
	}
	if r.kind == ephemeral {
		c.numEphemerals++
		if t.sessions[proto.SessionID(r.owner)] == nil {
			c.say("D2: %q is owned by session %v, which is not there", path, proto.SessionID(r.owner))
		}
	}
	c.numZnodes++
	c.digest += fresh.hash()
	c.dataSize += int64(len(path) + len(r.data))
	c.weight += n.blob().weight()
	if int(n.acl) > len(t.acls.lists) || n.acl != 0 && t.aclOf(n) == nil || t.acls.key(n.acl) != r.acl {
		c.say("D3: %q has an ACL that is not number %d", path, n.acl)
	} else if n.acl != 0 {
		c.refs[n.acl]++
	}
}

func (c *checker) sessions() {
	for id, s := range c.t.sessions {
		if s.rec.id != id {
			c.say("D2: session %v is indexed as %v", s.rec.id, id)
		}
		if fresh := c.t.sealSession(*s.rec); fresh.digest != s.rec.digest {
			c.say("D3: session %v has digest %#x, computed is %#x", id, s.rec.digest, fresh.digest)
		}
		if s.rec.connEpoch > c.t.lastZxid {
			c.say("D4: session %v was attached at %v, the last zxid is %v", id, s.rec.connEpoch, c.t.lastZxid)
		}
		c.digest += s.rec.digest
		for _, n := range c.list(s.ephemerals) {
			if proto.SessionID(n.record().owner) != id {
				c.say("D2: session %v lists %q, which it does not own", id, n.path())
			}
		}
	}
	for _, n := range c.list(c.t.collectable) {
		if k := n.kind(); k != container && k != ttl {
			c.say("D2: %q is listed as collectable", n.path())
		}
	}
}

func (c *checker) ensemble() {
	e, fresh := c.t.ensemble, state{singles: make(map[byte]string)}
	fresh.setEnsemble(e)
	digest := singleDigest(ensemblePrefix, c.t.singles[ensemblePrefix])
	if fresh.digest != digest {
		c.say("D3: the members have digest %#x, computed is %#x", digest, fresh.digest)
	}
	if err := e.plausible(c.t.lastZxid); err != nil {
		c.say("D4, D6: the members: %w", err)
	}
	c.digest += digest + singleDigest(limitPrefix, c.t.singles[limitPrefix])
}

// list checks the ownerIdx of the znodes in a list of an owner, and returns these znodes.
func (c *checker) list(owned []znodeID) []*znode {
	var znodes []*znode
	for i, id := range owned {
		n := c.t.znodes.Peek(id)
		if n == nil || n.first == nil {
			c.say("D2: number %d is listed, which is no znode's", id)
			continue
		}
		if int(n.ownerIdx) != i || c.t.get(n.path()) != n {
			c.say("D2: %q is listed at place %d, it knows %d", n.path(), i, n.ownerIdx)
		}
		c.owned[id] = true
		znodes = append(znodes, n)
	}
	return znodes
}

// owners checks that every ephemeral, container and TTL znode is listed.
func (c *checker) owners() {
	for n := range c.t.znodes.All() {
		if n.kind() != persistent && !c.owned[n.id] {
			c.say("D2: %q is not listed by its owner", n.path())
		}
	}
}

// quotas compares each quota with a fresh count of its znodes.
func (c *checker) quotas() {
	limits := 0
	for n := range c.t.znodes.All() {
		if target, ok := quotaTarget(n.path(), proto.QuotaLimits); ok {
			if limits++; c.t.quotas[target] == nil {
				c.say("D3: %q has limits and no quota", target)
			}
		}
	}
	if limits != len(c.t.quotas) {
		c.say("D3: %d quotas, %d limits", len(c.t.quotas), limits)
	}
	for target, q := range c.t.quotas {
		fresh := quota{path: target}
		if n := c.t.get(target); n != nil {
			c.t.countBelow(n, &fresh)
		}
		if *q != fresh {
			c.say("D3: the quota counts %v, counted are %v", *q, fresh)
		}
	}
}

// pools checks that every number in use belongs to a znode of the tree or a checkpoint's note.
func (c *checker) pools() {
	t := c.t
	if t.dirs.Len() != c.dirs {
		c.say("D7: %d lists of children are kept, %d are in use", t.dirs.Len(), c.dirs)
	}
	if t.znodes.Len() != t.index.len() {
		c.say("D7: %d znodes are kept, %d are in the index", t.znodes.Len(), t.index.len())
	}
	if t.dirty == nil {
		return
	}
	// By path: bit 0 is a note of a znode in the tree, bit 1 a note of a deleted znode.
	there := make(map[string]int)
	for e := range t.dirty.notes.All() {
		path, bit := e.blob().path(), 2
		if e.id != 0 {
			bit = 1
			if n := t.get(path); n == nil || n.blob() != e.blob() || t.dirty.noteOf(n) != e {
				c.say("D7: what is noted of %q is not so", path)
			}
		}
		if there[path]&bit != 0 {
			c.say("D7: %q is noted twice", path)
		}
		there[path] |= bit
	}
	for path, bits := range there {
		if bits == 2 && t.get(path) != nil {
			c.say("D7: %q is noted as gone", path)
		}
	}
}

func (c *checker) totals() {
	t := c.t
	if c.digest != t.digest {
		c.say("D3: the digest is %#x, computed is %#x", t.digest, c.digest)
	}
	if c.numZnodes != t.index.len() {
		c.say("D3: %d znodes, counted are %d", t.index.len(), c.numZnodes)
	}
	if c.dataSize != t.dataSize || c.numEphemerals != t.numEphemerals {
		c.say("D3: %d bytes in paths and data and %d ephemerals, counted are %d and %d",
			t.dataSize, t.numEphemerals, c.dataSize, c.numEphemerals)
	}
	if c.weight != t.weight {
		c.say("D3: the znodes weigh %d bytes, computed are %d", t.weight, c.weight)
	}
	l, fresh := t.limit, state{singles: make(map[byte]string)}
	fresh.replaceLimit(l)
	if l.check() != nil || t.singles[limitPrefix] != fresh.singles[limitPrefix] || l.Full && t.Weight() < l.Resumes() {
		c.say("D8: the limit is %+v, the state weighs %d bytes", l, t.Weight())
	}
	if len(c.refs) != len(t.acls.numbers) {
		c.say("D3: %d ACLs are kept, %d are in use", len(t.acls.numbers), len(c.refs))
	}
	for number, refs := range c.refs {
		if a := t.acls.at(number); t.acls.numbers[a.key] != number || a.refs != refs {
			c.say("D3: an ACL is counted %d times, it is used %d times", a.refs, refs)
		}
	}
	if t.inMulti || t.keepStats || len(t.undo) != 0 {
		c.say("D3: the undo log is not empty")
	}
}
