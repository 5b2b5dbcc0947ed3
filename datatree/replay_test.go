package datatree

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// history generates transactions that a ZooKeeper server can have written, and applies them.
type history struct {
	rng      *rand.Rand
	live     *Replay
	records  []*zkfiles.Record
	digests  []uint64 // of our own, after each record
	sessions []proto.SessionID
	keys     map[string]int64 // numbers of ACLs, in the order of their first use
	lists    map[int64][]proto.ACL
}

func newHistory(seed uint64) *history {
	return &history{
		rng: rand.New(rand.NewPCG(seed, 1)), live: NewReplay(New(Options{})),
		keys: make(map[string]int64), lists: make(map[int64][]proto.ACL),
	}
}

func (h *history) pick() string {
	p := "/" + string(rune('a'+h.rng.IntN(3)))
	for range h.rng.IntN(3) {
		p += "/" + string(rune('0'+h.rng.IntN(3)))
	}
	return p
}

func (h *history) acl() []proto.ACL {
	list := proto.OpenACL()
	if h.rng.IntN(2) == 0 {
		list = []proto.ACL{{Perms: 31, ID: proto.ID{Scheme: "digest", ID: fmt.Sprintf("u%d:h", h.rng.IntN(30))}}}
		if key := fmt.Sprint(list); h.keys[key] == 0 {
			h.keys[key] = int64(len(h.keys)) + 1
			h.lists[h.keys[key]] = list
		}
	}
	return list
}

// txn returns a write that succeeds on the live tree, or nil.
func (h *history) txn(session proto.SessionID) *zkfiles.Txn {
	t := h.live.t
	path := h.pick()
	n := t.get(path)
	data := []byte(strings.Repeat("x", h.rng.IntN(9)))
	if h.rng.IntN(8) == 0 {
		data = nil
	}
	switch op := h.rng.IntN(8); {
	case n == nil && op < 6:
		p := t.get(proto.ParentPath(path))
		if p == nil || p.kind() == ephemeral {
			return nil
		}
		c := zkfiles.Txn{Op: proto.OpCreate, Path: path, Data: data, ACL: h.acl(), ParentCversion: t.record(p).cversion + 1}
		switch h.rng.IntN(6) {
		case 0:
			c.Op = proto.OpCreateContainer
		case 1:
			c.Op, c.TTLMs = proto.OpCreateTTL, 1+h.rng.Int64N(1e6)
		case 2, 3:
			c.Op, c.Ephemeral = proto.OpCreate2, session != 0
		}
		return &c
	case n == nil:
		return nil
	case op < 3:
		r := t.record(n)
		return &zkfiles.Txn{Op: proto.OpSetData, Path: path, Data: data, Version: r.version + 1}
	case op < 5:
		r := t.record(n)
		return &zkfiles.Txn{Op: proto.OpSetACL, Path: path, ACL: h.acl(), Version: r.aversion + 1}
	case n.dir == 0:
		return &zkfiles.Txn{Op: proto.OpDelete, Path: path}
	}
	return nil
}

// step appends a transaction and applies it to the live tree.
func (h *history) step(t *testing.T) {
	r := &zkfiles.Record{Zxid: h.live.t.lastZxid.Next(), TimeMs: int64(1000 + len(h.records))}
	if len(h.sessions) > 0 {
		r.Session = h.sessions[h.rng.IntN(len(h.sessions))]
	}
	switch op := h.rng.IntN(20); {
	case op == 0 || len(h.sessions) == 0:
		r.Session = proto.SessionID(len(h.records) + 1)
		r.Txn = zkfiles.Txn{Op: proto.OpCreateSession, TimeoutMs: 4000}
		h.sessions = append(h.sessions, r.Session)
	case op == 1:
		// With its paths, as since 3.6. Without them, an ephemeral that is gone from the snapshot
		// already leaves no trace in its parent's pzxid, in ZooKeeper either.
		r.Txn = zkfiles.Txn{Op: proto.OpCloseSession, HasPaths: true, Paths: h.live.t.Ephemerals(r.Session, nil)}
		for i, s := range h.sessions {
			if s == r.Session {
				h.sessions = append(h.sessions[:i], h.sessions[i+1:]...)
				break
			}
		}
	case op == 2: // a failed multi, whose first operation is there as if it had been executed
		r.Txn = zkfiles.Txn{Op: proto.OpMulti, Ops: []zkfiles.Txn{
			{Op: proto.OpCreate, Path: "/never", ACL: proto.OpenACL(), ParentCversion: 1 << 20}, {Op: proto.OpError, Err: -101},
		}}
	default:
		if x := h.txn(r.Session); x != nil {
			r.Txn = *x
			if op == 3 {
				r.Txn = zkfiles.Txn{Op: proto.OpMulti, Ops: []zkfiles.Txn{{Op: proto.OpCheck, Path: "/"}, *x}}
			}
		} else {
			r.Txn = zkfiles.Txn{Op: proto.OpError, Err: proto.ErrNoNode}
		}
	}
	if err := h.live.Apply(r); err != nil {
		t.Fatal(err)
	}
	r.HasDigest, r.DigestVersion, r.Digest = true, zkfiles.DigestVersion, h.live.Digest()
	h.records = append(h.records, r)
	h.digests = append(h.digests, h.live.t.Digest())
}

// snapshot returns a fuzzy snapshot: before each znode, some transactions are applied.
type fuzzySnapshot struct {
	zxid, end proto.Zxid
	sessions  []zkfiles.Session
	acls      map[int64][]proto.ACL
	znodes    []zkfiles.Znode
}

func (h *history) snapshot(t *testing.T) *fuzzySnapshot {
	s := &fuzzySnapshot{zxid: h.live.t.lastZxid, acls: make(map[int64][]proto.ACL)}
	for id := range h.live.t.Sessions() {
		s.sessions = append(s.sessions, zkfiles.Session{ID: id.ID, TimeoutMs: id.TimeoutMs})
	}
	for key, list := range h.lists {
		s.acls[key] = list
	}
	var walk func(path string)
	walk = func(path string) {
		for range h.rng.IntN(6) {
			h.step(t)
		}
		tree := h.live.t
		n := tree.get(path)
		if n == nil {
			return
		}
		r := tree.record(n)
		z := zkfiles.Znode{Path: path, Data: r.bytes(), ACL: zkfiles.OpenKey, Stat: r.zooKeeperStat()}
		if n.acl != 0 {
			z.ACL = h.keys[fmt.Sprint(tree.aclOf(n).acls())]
		}
		if path != configPath {
			s.znodes = append(s.znodes, z)
		}
		var children []string
		for _, c := range tree.sorted(tree.children(n)) {
			children = append(children, c.path())
		}
		for _, c := range children {
			walk(c)
		}
	}
	walk("/")
	s.end = h.live.t.lastZxid
	return s
}

// A fuzzy snapshot and the log from its zxid on give the state of the server that wrote them, and
// its digest after each record from the end of the fuzzy range on.
func TestReplay_OfAFuzzySnapshot(t *testing.T) {
	for seed := range exhaustive.Or(uint64(150), 5000) {
		h := newHistory(seed)
		for range h.rng.IntN(60) {
			h.step(t)
		}
		s := h.snapshot(t)
		for range h.rng.IntN(30) {
			h.step(t)
		}
		got := NewReplay(New(Options{TrackDirty: true}))
		for _, session := range s.sessions {
			got.setSession(session.ID, session.TimeoutMs)
		}
		for i := range s.znodes {
			if err := got.addZnode(&s.znodes[i], s.acls); err != nil {
				t.Fatal(err)
			}
		}
		got.SetZxid(s.zxid)
		for i, r := range h.records {
			if r.Zxid <= s.zxid {
				continue
			}
			if err := got.Apply(r); err != nil {
				t.Fatal(err)
			}
			if r.Zxid < s.end {
				continue
			}
			if got.Digest() != r.Digest {
				t.Fatalf("seed %d, transaction %v: ZooKeeper's digest is %#x, want %#x", seed, r.Zxid, got.Digest(), r.Digest)
			}
			if got.t.Digest() != h.digests[i] {
				t.Fatalf("seed %d, transaction %v: the digest is %#x, want %#x", seed, r.Zxid, got.t.Digest(), h.digests[i])
			}
		}
		for _, r := range []*Replay{got, h.live} {
			if unknown, err := r.Finish(); err != nil || unknown != 0 {
				t.Fatalf("seed %d: %d unknown sessions, %v", seed, unknown, err)
			}
			if err := r.t.Check(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if fresh := NewReplay(r.t); fresh.Digest() != r.Digest() {
				t.Fatalf("seed %d: ZooKeeper's digest is kept as %#x, computed %#x", seed, r.Digest(), fresh.Digest())
			}
		}
		if got.t.Digest() != h.live.t.Digest() {
			t.Fatalf("seed %d: the trees differ", seed)
		}
	}
}

// logged returns the transaction that ZooKeeper logs for a request with this result. tree has
// applied the request. ephemerals are those of the request's session before.
func logged(t *rapid.T, tree *Tree, h Header, r *Request, res Result, ephemerals []string) *zkfiles.Record {
	x := zkfiles.Record{Session: r.Session, Zxid: h.Zxid, TimeMs: h.TimeMs, Txn: zkfiles.Txn{Op: proto.OpError, Err: res.Err}}
	if res.Err != proto.OK || res.MultiFailed {
		return &x
	}
	var multi proto.MultiRequest
	d := jute.NewDecoder(r.Body)
	switch r.Op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		var c proto.CreateRequest
		c.Decode(&d, r.Op)
		multi.Ops = []proto.MultiOp{createOp(r.Op, &c)}
	case proto.OpSetData:
		var c proto.SetDataRequest
		c.Decode(&d)
		multi.Ops = []proto.MultiOp{{Op: r.Op, Path: c.Path, Data: c.Data}}
	case proto.OpSetACL:
		var c proto.SetACLRequest
		c.Decode(&d)
		n := tree.get(c.Path)
		x.Txn = zkfiles.Txn{Op: r.Op, Path: c.Path, ACL: tree.aclOf(n).acls(), Version: tree.record(n).aversion}
		return &x
	case proto.OpDelete, proto.OpDeleteContainer:
		multi.Ops = []proto.MultiOp{{Op: r.Op, Path: d.String()}}
	case proto.OpMulti:
		if err := multi.Decode(&d, r.Op); err != nil {
			t.Fatal(err)
		}
	case proto.OpCreateSession, proto.OpReattachSession: // the latter may have another timeout
		var body CreateSessionBody
		body.decode(&d)
		x.Session, x.Txn = res.SessionID, zkfiles.Txn{Op: proto.OpCreateSession, TimeoutMs: body.TimeoutMs}
		return &x
	case proto.OpCloseSession, proto.OpExpireSession:
		x.Txn = zkfiles.Txn{Op: proto.OpCloseSession, HasPaths: h.Zxid%2 == 0}
		if x.Txn.HasPaths {
			x.Txn.Paths = ephemerals
		}
		return &x
	default: // what ZooKeeper does not log in this way
		return &x
	}
	x.Txn = zkfiles.Txn{Op: proto.OpMulti}
	for i, op := range multi.Ops {
		result := proto.MultiResult{Path: res.Path, Stat: res.Stat}
		if r.Op == proto.OpMulti {
			result = res.Multi[i]
		}
		one := zkfiles.Txn{Op: op.Op, Path: op.Path, Data: op.Data, Version: result.Stat.Version}
		switch op.Op {
		case proto.OpSetData, proto.OpDelete, proto.OpDeleteContainer, proto.OpCheck:
		default:
			one.Op, one.Path, one.ParentCversion = proto.OpCreate, result.Path, zkfiles.NoCversion
			if p := tree.get(proto.ParentPath(one.Path)); p != nil && r.Op != proto.OpMulti {
				one.ParentCversion = tree.record(p).cversion
			}
			n := tree.get(one.Path)
			if n == nil { // a later operation has deleted it
				by := newTxn(h, r)
				one.ACL, _ = fixACL(&by, one.Path, op.ACL)
				break
			}
			one.ACL = tree.aclOf(n).acls()
			switch rec := tree.record(n); rec.kind {
			case ephemeral:
				one.Ephemeral = true
			case container:
				one.Op = proto.OpCreateContainer
			case ttl:
				one.Op, one.TTLMs = proto.OpCreateTTL, int64(rec.owner)
			}
		}
		x.Txn.Ops = append(x.Txn.Ops, one)
	}
	if r.Op != proto.OpMulti {
		x.Txn = x.Txn.Ops[0]
	}
	return &x
}

// The transactions that ZooKeeper would log for what a tree did give the same znodes and
// sessions. What members keep by themselves, below /zookeeper, is left out.
func TestReplay_DoesWhatTheTreeDid(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tree, r, g := New(Options{}), NewReplay(New(Options{})), newGenerator()
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			h, request := g.next(rt)
			ephemerals := tree.Ephemerals(request.Session, nil)
			res, _ := tree.Apply(h, request)
			g.saw(request, res)
			if err := r.Apply(logged(rt, tree, h, request, res, ephemerals)); err != nil {
				rt.Fatal(err)
			}
			for _, side := range [][2]*Tree{{tree, r.t}, {r.t, tree}} {
				for n := range side[0].znodes.All() {
					if path := n.path(); within(path, "/zookeeper") {
						continue
					}
					if twin := side[1].get(n.path()); twin == nil || side[0].record(n) != side[1].record(twin) {
						rt.Fatalf("%v: %s is %+v here, and not there", request.Op, n.path(), side[0].record(n))
					}
				}
				for s := range side[0].Sessions() {
					if twin, known := side[1].Session(s.ID); !known || twin.TimeoutMs != s.TimeoutMs {
						rt.Fatalf("%v: session %+v here, %+v there", request.Op, s, twin)
					}
				}
			}
			if err := r.t.Check(); err != nil {
				rt.Fatal(err)
			}
			if fresh := NewReplay(r.t); fresh.Digest() != r.Digest() {
				rt.Fatal("ZooKeeper's digest is wrong")
			}
		}
	})
}

// replayed returns a tree after transactions of a session, numbered from 1.
func replayed(t *testing.T, txns ...zkfiles.Txn) *Replay {
	t.Helper()
	r := NewReplay(New(Options{}))
	for i, x := range txns {
		if x.Op == proto.OpCreate {
			x.ACL = proto.OpenACL()
		}
		if err := r.Apply(&zkfiles.Record{Session: 1, Zxid: proto.Zxid(i + 1), TimeMs: 5, Txn: x}); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func TestReplay_FailedMultiChangesNothing(t *testing.T) {
	ops := []zkfiles.Txn{
		{Op: proto.OpCreate, Path: "/a", ACL: proto.OpenACL(), ParentCversion: 1},
		{Op: proto.OpCreate, Path: "/b", ACL: proto.OpenACL(), ParentCversion: 2},
	}
	if r := replayed(t, zkfiles.Txn{Op: proto.OpMulti, Ops: ops}); r.t.get("/a") == nil || r.t.get("/b") == nil {
		t.Error("a multi is not applied")
	}
	r := replayed(t, zkfiles.Txn{Op: proto.OpMulti, Ops: append(ops, zkfiles.Txn{Op: proto.OpError, Err: proto.ErrNoNode})})
	if root := r.t.root.record(); r.t.get("/a") != nil || root.cversion != 0 {
		t.Error("a failed multi is applied")
	}
}

// A fuzzy snapshot can have a later znode at the path of a transaction.
func TestReplay_LaterZnodeAtThePath(t *testing.T) {
	later := []zkfiles.Txn{
		{Op: proto.OpCreate, Path: "/a", ParentCversion: 7}, {Op: proto.OpCreate, Path: "/a/b", ParentCversion: 1},
		{Op: proto.OpCreate, Path: "/a/b/c", ParentCversion: 1},
	}
	// The earlier one was created: it is there, and its parent counts it.
	r := replayed(t, append(later, zkfiles.Txn{Op: proto.OpCreate, Path: "/a/b", Data: []byte("earlier"), ParentCversion: 5})...)
	if a, b := r.t.get("/a").record(), r.t.get("/a/b").record(); a.cversion != 5 || a.pzxid != 4 || b.data != "" || b.czxid != 2 {
		t.Errorf("%+v %+v", a, b)
	}
	// The earlier one was deleted: so is the later one, with everything below. The log creates it
	// again.
	r = replayed(t, append(later, zkfiles.Txn{Op: proto.OpDelete, Path: "/a/b"})...)
	if r.t.get("/a/b") != nil || r.t.get("/a/b/c") != nil || r.t.get("/a").record().pzxid != 4 {
		t.Error("a later znode is left")
	}
	if err := r.t.Check(); err != nil {
		t.Error(err)
	}
	if fresh := NewReplay(r.t); fresh.Digest() != r.Digest() {
		t.Error("ZooKeeper's digest is wrong")
	}
}

// A fuzzy snapshot without its log is refused: for its zxids, or for an ACL that is in neither.
func TestReplay_FuzzySnapshotWithoutItsLog(t *testing.T) {
	r := NewReplay(New(Options{}))
	z := zkfiles.Znode{Path: "/a", ACL: 12, Stat: zkfiles.Stat{Czxid: 9, Mzxid: 9, Pzxid: 9}}
	if err := r.addZnode(&z, nil); err != nil {
		t.Fatal(err)
	}
	r.SetZxid(8)
	if _, err := r.Finish(); err == nil || !strings.Contains(err.Error(), "the snapshot has a change of zxid 0x9") {
		t.Error(err)
	}
	if r.t.Readable(ACLRef{r.t.aclOf(r.t.get("/a"))}, Caller{IDs: []proto.ID{{Scheme: "world", ID: "anyone"}}}) {
		t.Error("a znode whose ACL is not known is readable")
	}
	r.SetZxid(9)
	if _, err := r.Finish(); err == nil || !strings.Contains(err.Error(), "/a has the ACL number 12") {
		t.Error(err)
	}
	if err := r.Apply(&zkfiles.Record{Zxid: 10, Txn: zkfiles.Txn{Op: proto.OpSetACL, Path: "/a", ACL: proto.ReadACL(), Version: 1}}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Finish(); err != nil {
		t.Error(err)
	}
}

// An ephemeral whose session is in no table is removed at the end, as by a starting ZooKeeper.
func TestReplay_EphemeralOfNoSession(t *testing.T) {
	r := NewReplay(New(Options{}))
	z := zkfiles.Znode{Path: "/e", ACL: zkfiles.OpenKey, Stat: zkfiles.Stat{Czxid: 1, Mzxid: 1, Pzxid: 1, Owner: 5}}
	if err := r.addZnode(&z, nil); err != nil {
		t.Fatal(err)
	}
	r.SetZxid(1)
	if unknown, err := r.Finish(); err != nil || unknown != 1 || r.t.get("/e") != nil || r.t.NumSessions() != 0 {
		t.Errorf("%d, %v", unknown, err)
	}
	if err := r.t.Check(); err != nil {
		t.Error(err)
	}
}

func TestReplay_Keep(t *testing.T) {
	r := NewReplay(New(Options{}))
	for i, path := range []string{"/a", "/a/b", "/a/b/c", "/a/bc", "/a/x", "/ab", "/zookeeper/quota/a", "/zookeeper/quota/a/b", "/zookeeper/quota/a/b/zookeeper_limits", "/zookeeper/quota/ab"} {
		x := zkfiles.Record{Zxid: proto.Zxid(i + 1), Txn: zkfiles.Txn{Op: proto.OpCreate, Path: path, Data: []byte("count=5"), ACL: proto.OpenACL(), ParentCversion: int32(i) + 1}}
		if err := r.Apply(&x); err != nil {
			t.Fatal(err)
		}
	}
	if all := r.t.NumZnodes(); r.Keep("/missing") || !r.Keep("/") || r.t.NumZnodes() != all || !r.Keep("/a/b") {
		t.Fatal("Keep does not know which znodes there are")
	}
	var left []string
	r.t.Walk("/", func(z proto.Znode) bool { left = append(left, z.Path); return true })
	want := "/ /a /a/b /a/b/c /zookeeper /zookeeper/config /zookeeper/quota /zookeeper/quota/a /zookeeper/quota/a/b /zookeeper/quota/a/b/zookeeper_limits"
	if got := strings.Join(left, " "); got != want {
		t.Errorf("left are %s", got)
	}
	if err := r.t.Check(); err != nil {
		t.Error(err)
	}
}
