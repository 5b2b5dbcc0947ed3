package datatree_test

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/proto"
	"pgregory.net/rapid"
)

// conn identifies the connection of a request: a session and one of its epochs.
type conn struct {
	session proto.SessionID
	epoch   proto.Zxid
	super   bool
}

// machine drives a tree and the model side by side.
type machine struct {
	tree   *datatree.Tree
	model  *model
	now    int64
	unique int
	conns  []conn
	disk   map[string]string // what captures have reported so far
}

// TestTree_AgreesWithModel applies random requests to a tree and to the model and compares
// everything that clients can see.
func TestTree_AgreesWithModel(t *testing.T) {
	exhaustive.Checks(t, 30, 100)
	rapid.Check(t, func(t *rapid.T) {
		s := &machine{
			tree: datatree.New(datatree.Options{TrackDirty: true}), model: newModel(), now: 1_700_000_000_000, disk: make(map[string]string),
		}
		s.createSession(t)
		t.Repeat(map[string]func(*rapid.T){
			"create": func(t *rapid.T) { repeat(t, 20, s.create) },
			"write":  func(t *rapid.T) { repeat(t, 20, s.write) },
			"quota":  s.quota,
			"multi":  func(t *rapid.T) { repeat(t, 10, s.multi) },
			"session": func(t *rapid.T) {
				switch rapid.IntRange(0, 4).Draw(t, "what") {
				case 0:
					s.createSession(t)
				case 1, 2:
					s.reattach(t)
				case 3:
					s.expire(t)
				default:
					s.request(t, s.conn(t), proto.OpCloseSession, nil, func(e env) outcome { return outcome{events: s.model.closeSession(e)} })
				}
			},
			"garbled":    s.garbled,
			"collect":    s.collect,
			"reconfig":   s.reconfig,
			"checkpoint": s.checkpoint,
			"epoch": func(*rapid.T) {
				s.model.last = s.model.last.NextEpoch()
				s.tree.SetLastZxid(s.model.last)
			},
			"read": s.read,
		})
		s.checkpoint(t)
		s.compareAll(t)
	})
}

func repeat(t *rapid.T, most int, do func(*rapid.T)) {
	for range rapid.IntRange(1, most).Draw(t, "times") {
		do(t)
	}
}

// conn draws a connection: mostly the latest of a live session, rarely one of a session that has
// ended or moved.
func (s *machine) conn(t *rapid.T) conn {
	if rapid.IntRange(0, 15).Draw(t, "stale") == 0 {
		return rapid.SampledFrom(s.conns).Draw(t, "conn")
	}
	var live []conn
	for _, id := range slices.Sorted(maps.Keys(s.model.sessions)) {
		live = append(live, conn{session: id, epoch: s.model.sessions[id].epoch})
	}
	if len(live) == 0 {
		s.createSession(t)
		return s.conns[len(s.conns)-1]
	}
	return rapid.SampledFrom(live).Draw(t, "conn")
}

func (s *machine) create(t *rapid.T) {
	c := s.createRequest(t)
	op := createOp(t, c.Mode)
	s.request(t, s.conn(t), op, c.Append(nil, op), func(e env) outcome { return s.model.create(e, c, op, false) })
}

// quota does what a tool does to set a quota: it creates the missing znodes one by one. Or it
// deletes one. Then a client writes below.
func (s *machine) quota(t *rapid.T) {
	limited := rapid.SampledFrom([]string{"/q", "/q", "/q/a", "/a"}).Draw(t, "limited")
	target := quotaRoot + limited
	defer repeat(t, 10, func(t *rapid.T) {
		s.writeAt(t, limited+rapid.SampledFrom([]string{"", "", "/a", "/a/b", "/b", "/c"}).Draw(t, "below"))
	})
	if rapid.IntRange(0, 3).Draw(t, "drop") == 0 {
		which := rapid.SampledFrom([]string{"/zookeeper_limits", "/zookeeper_stats"}).Draw(t, "which")
		s.deleteAt(t, s.conn(t), &proto.PathVersionRequest{Path: target + which, Version: -1})
		return
	}
	for _, path := range []string{target[:len(quotaRoot)+2], target, target + "/zookeeper_limits", target + "/zookeeper_stats"} {
		s.createAt(t, s.conn(t), &proto.CreateRequest{Path: path, Data: s.dataFor(t, path), ACL: proto.OpenACL()})
	}
}

// writeAt creates the znode or, if it exists, changes or deletes it, with all permissions.
func (s *machine) writeAt(t *rapid.T, path string) {
	from := s.conn(t)
	from.super = true
	switch data := s.data(t); {
	case s.model.nodes[path] == nil:
		s.createAt(t, from, &proto.CreateRequest{Path: path, Data: data, ACL: proto.OpenACL()})
	case rapid.IntRange(0, 3).Draw(t, "delete") == 0:
		s.deleteAt(t, from, &proto.PathVersionRequest{Path: path, Version: -1})
	default:
		s.setDataAt(t, from, &proto.SetDataRequest{Path: path, Data: data, Version: -1})
	}
}

func (s *machine) createAt(t *rapid.T, from conn, c *proto.CreateRequest) {
	s.request(t, from, proto.OpCreate, c.Append(nil, proto.OpCreate), func(e env) outcome { return s.model.create(e, c, proto.OpCreate, false) })
}

func (s *machine) deleteAt(t *rapid.T, from conn, r *proto.PathVersionRequest) {
	s.request(t, from, proto.OpDelete, r.Append(nil), func(e env) outcome {
		events, code := s.model.delete(e, r.Path, r.Version)
		return outcome{err: code, events: events}
	})
}

func (s *machine) setDataAt(t *rapid.T, from conn, r *proto.SetDataRequest) {
	s.request(t, from, proto.OpSetData, r.Append(nil), func(e env) outcome {
		events, code := s.model.setData(e, r)
		if code != proto.OK {
			return outcome{err: code}
		}
		return outcome{stat: s.model.stat(r.Path), events: events}
	})
}

func (s *machine) write(t *rapid.T) {
	from := s.conn(t)
	switch rapid.IntRange(0, 3).Draw(t, "op") {
	case 0:
		s.deleteAt(t, from, s.pathVersion(t))
	case 1:
		path := s.path(t)
		r := &proto.SetACLRequest{Path: path, ACL: acl(t), Version: s.version(t, path, func(n *modelNode) int32 { return n.aversion })}
		s.request(t, from, proto.OpSetACL, r.Append(nil), func(e env) outcome {
			if code := s.model.setACL(e, r); code != proto.OK {
				return outcome{err: code}
			}
			return outcome{stat: s.model.stat(path)}
		})
	default:
		s.setDataAt(t, from, s.setDataRequest(t))
	}
}

func (s *machine) multi(t *rapid.T) {
	ops := s.multiOps(t)
	body := (&proto.MultiRequest{Ops: ops}).Append(nil)
	s.request(t, s.conn(t), proto.OpMulti, body, func(e env) outcome { return s.model.multi(e, ops) })
}

// garbled sends truncated bodies, and a multi with a forbidden operation.
func (s *machine) garbled(t *rapid.T) {
	c := s.createRequest(t)
	ops := []proto.OpCode{proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL, proto.OpSetData, proto.OpSetACL, proto.OpDelete, proto.OpMulti}
	op := rapid.SampledFrom(ops).Draw(t, "op")
	var body []byte
	switch op {
	case proto.OpSetData:
		body = s.setDataRequest(t).Append(nil)
	case proto.OpSetACL:
		body = (&proto.SetACLRequest{Path: c.Path, ACL: c.ACL}).Append(nil)
	case proto.OpDelete:
		body = s.pathVersion(t).Append(nil)
	case proto.OpMulti:
		m := s.multiOps(t)
		if rapid.Bool().Draw(t, "wrongOp") {
			wrong := []proto.OpCode{proto.OpSetACL, proto.OpExists, proto.OpGetData, proto.OpDeleteContainer, proto.OpMulti, proto.OpError, 77}
			m = append(m, proto.MultiOp{Op: rapid.SampledFrom(wrong).Draw(t, "wrong")})
		}
		body = (&proto.MultiRequest{Ops: m}).Append(nil)
	default:
		body = c.Append(nil, op)
	}
	body = body[:rapid.IntRange(0, len(body)-1).Draw(t, "cut")]
	s.request(t, s.conn(t), op, body, func(env) outcome { return outcome{err: proto.ErrMarshallingError} })
}

func (s *machine) createSession(t *rapid.T) {
	body, server := sessionBody(t), serverID(t)
	h := s.header(t)
	id := proto.SessionID(int64(server)<<56 | int64(h.Zxid.Epoch()&0xffffff)<<32 | int64(h.Zxid.Counter()))
	s.model.sessions[id] = modelSession{body.TimeoutMs, body.Passwd, h.Zxid, server}
	s.conns = append(s.conns, conn{session: id, epoch: h.Zxid})
	s.apply(t, h, &datatree.Request{Op: proto.OpCreateSession, Body: body.Append(nil), Server: server}, outcome{session: id})
}

func (s *machine) reattach(t *rapid.T) {
	id := s.conn(t).session
	if rapid.IntRange(0, 9).Draw(t, "unknown") == 0 {
		id++
	}
	was, known := s.model.sessions[id]
	body, server := sessionBody(t), serverID(t)
	if right := rapid.IntRange(0, 3).Draw(t, "right") > 0; right {
		body.Passwd = was.passwd
	}
	h := s.header(t)
	want := outcome{session: id}
	switch {
	case !known:
		want = outcome{err: proto.ErrSessionExpired}
	case body.Passwd != was.passwd:
		want = outcome{err: proto.ErrAuthFailed}
	default:
		s.model.sessions[id] = modelSession{body.TimeoutMs, was.passwd, h.Zxid, server}
		s.conns = append(s.conns, conn{session: id, epoch: h.Zxid})
	}
	s.apply(t, h, &datatree.Request{Session: id, Op: proto.OpReattachSession, Body: body.Append(nil), Server: server}, want)
}

// expire proposes the expiry of a session, sometimes as a former leader.
func (s *machine) expire(t *rapid.T) {
	epoch := s.model.last.Next().Epoch() - uint32(rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "ago"))
	body := datatree.ExpireSessionBody{Epoch: epoch}.Append(nil)
	s.request(t, s.conn(t), proto.OpExpireSession, body, func(e env) outcome {
		if epoch != e.h.Zxid.Epoch() {
			return outcome{err: proto.ErrBadVersion}
		}
		return outcome{events: s.model.closeSession(e)}
	})
}

func sessionBody(t *rapid.T) *datatree.CreateSessionBody {
	b := &datatree.CreateSessionBody{TimeoutMs: rapid.Int32Range(1, 40_000).Draw(t, "timeout")}
	b.Passwd[0] = rapid.Byte().Draw(t, "passwd")
	return b
}

func serverID(t *rapid.T) uint8 {
	return rapid.SampledFrom([]uint8{1, 2, 127, 128, 254}).Draw(t, "server")
}

// collect does what the leader does periodically, and tries what must be refused.
func (s *machine) collect(t *rapid.T) {
	s.now += rapid.Int64Range(0, 300).Draw(t, "wait")
	if rapid.Bool().Draw(t, "edge") { // the last millisecond of a time to live, or the first one after it
		for _, path := range slices.Sorted(maps.Keys(s.model.nodes)) {
			if n := s.model.nodes[path]; n.kind == ttl && n.ttl <= 500 && n.mtime+n.ttl >= s.now {
				s.now = n.mtime + n.ttl + rapid.Int64Range(0, 1).Draw(t, "after")
				break
			}
		}
	}
	neverUsed := rapid.SampledFrom([]int64{0, 1, 200}).Draw(t, "neverUsed")
	var got []string
	body := datatree.DeleteContainerBody{Path: s.path(t)}
	for _, c := range s.tree.Collectable(s.now, neverUsed, len(s.model.nodes)) {
		if got = append(got, c.Path); c.Czxid != s.model.nodes[c.Path].czxid {
			t.Fatalf("Collectable: %s was created by %v", c.Path, c.Czxid)
		}
	}
	slices.Sort(got)
	want := s.model.collectable(s.now, neverUsed)
	if !slices.Equal(got, want) {
		t.Fatalf("Collectable: got %q, want %q", got, want)
	}
	if limited := s.tree.Collectable(s.now, neverUsed, 1); len(limited) != min(1, len(want)) {
		t.Fatalf("Collectable with limit 1: got %q of %q", limited, want)
	}
	// A candidate may have changed meanwhile, so any path is possible.
	if len(want) > 0 && rapid.Bool().Draw(t, "candidate") {
		body.Path = rapid.SampledFrom(want).Draw(t, "collect")
	}
	if n := s.model.nodes[body.Path]; n != nil {
		body.Czxid = rapid.SampledFrom([]proto.Zxid{0, n.czxid, n.czxid, n.czxid - 1}).Draw(t, "czxid")
	}
	h := s.header(t)
	h.TimeMs = s.now
	req := &datatree.Request{Op: proto.OpDeleteContainer, Body: body.Append(nil)}
	events, code := s.model.deleteContainer(env{h, req}, body.Path, body.Czxid)
	s.apply(t, h, req, outcome{err: code, events: events})
}

// header returns the next zxid, at a time that does not decrease.
func (s *machine) header(t *rapid.T) datatree.Header {
	s.now += rapid.Int64Range(0, 20).Draw(t, "ms")
	s.model.last = s.model.last.Next()
	return datatree.Header{Zxid: s.model.last, TimeMs: s.now}
}

// request sends a client's request. do applies it to the model if the session check passes.
func (s *machine) request(t *rapid.T, from conn, op proto.OpCode, body []byte, do func(env) outcome) {
	req := &datatree.Request{
		Session: from.session, ConnEpoch: from.epoch, Op: op, Body: body, IDs: anyIDs.Draw(t, "ids"), Server: 1,
		Flags:     datatree.RequestFlags(rapid.SampledFrom([]uint8{0, 0, 1, 1, 1, 2, 3}).Draw(t, "flags")),
		MaxBuffer: rapid.SampledFrom([]int32{0, 0, 0, 0, 0, 0, 111, 112, 120, 160}).Draw(t, "maxBuffer"),
	}
	if from.super {
		req.IDs = callers[len(callers)-1]
	}
	h := s.header(t)
	session, known := s.model.sessions[from.session]
	switch {
	case !known:
		s.apply(t, h, req, outcome{err: proto.ErrSessionExpired})
	case session.epoch != from.epoch:
		s.apply(t, h, req, outcome{err: proto.ErrSessionMoved})
	default:
		s.apply(t, h, req, do(env{h, req}))
	}
}

// apply encodes and decodes the request, applies it to the tree and compares the outcome.
func (s *machine) apply(t *rapid.T, h datatree.Header, req *datatree.Request, want outcome) {
	encoded := req.Append(nil)
	decoded := datatree.CommittedRequest(encoded, datatree.Identities{})
	if decoded.Op != req.Op {
		t.Fatalf("%v: decode what was encoded: %v", req.Op, datatree.ValidateRequest(encoded))
	}
	res, events := s.tree.Apply(h, &decoded)
	what := fmt.Sprintf("%v zxid %v session %v flags %d body %q", req.Op, h.Zxid, req.Session, req.Flags, req.Body)
	if res.Err != want.err || res.Zxid != h.Zxid {
		t.Fatalf("%s: got %v (%s), want %v", what, res.Err, res.Why, want.err)
	}
	if res.Err == proto.OK && (res.Path != want.path || res.Stat != want.stat || res.SessionID != want.session) {
		t.Fatalf("%s: got %q %+v %v, want %q %+v %v", what, res.Path, res.Stat, res.SessionID, want.path, want.stat, want.session)
	}
	if res.Pending != want.pending || res.Serial != want.serial || string(res.Data) != string(want.data) {
		t.Fatalf("%s: got pending %t serial %v %q, want %t %v %q", what, res.Pending, res.Serial, res.Data, want.pending, want.serial, want.data)
	}
	if res.MultiFailed != want.failed || !slices.EqualFunc(res.Multi, want.multi, sameResult) {
		t.Fatalf("%s:\n got failed %t %+v,\nwant failed %t %+v", what, res.MultiFailed, res.Multi, want.failed, want.multi)
	}
	if !slices.EqualFunc(events, want.events, func(got datatree.Event, want modelEvent) bool {
		return got.Type == want.typ && got.Path == want.path && got.Zxid == h.Zxid && s.readableAlike(got.ACL, want.acl)
	}) {
		t.Fatalf("%s:\n got events %+v,\nwant %+v", what, events, want.events)
	}
	if s.tree.LastZxid() != h.Zxid {
		t.Fatalf("%s: last zxid %v", what, s.tree.LastZxid())
	}
}

// sameResult compares what a client sees: the result of a plain create has no Stat.
func sameResult(got, want proto.MultiResult) bool {
	showsStat := want.Op == proto.OpCreate2 || want.Op == proto.OpSetData
	return got.Op == want.Op && got.Err == want.Err && got.Path == want.Path && (!showsStat || got.Stat == want.Stat)
}

func (s *machine) readableAlike(ref datatree.ACLRef, list []proto.ACL) bool {
	for _, ids := range callers {
		if c := (datatree.Caller{IDs: ids}); s.tree.Readable(ref, c) != permitted(list, proto.PermRead, c) {
			return false
		}
	}
	return true
}

// checkpoint adds the changes to the disk and continues with a tree restored from it.
func (s *machine) checkpoint(t *rapid.T) {
	all := make(map[string]string)
	addChanges(t, all, s.tree.CaptureAll())
	addChanges(t, s.disk, s.tree.Capture())
	if !maps.Equal(s.disk, all) {
		t.Fatalf("captures so far: %q, of all: %q", s.disk, all)
	}
	restored, err := datatree.Restore(datatree.Options{TrackDirty: true}, sorted(s.disk))
	if err != nil {
		t.Fatalf("Restore: %v", err)
	}
	if restored.Digest() != s.tree.Digest() || restored.LastZxid() != s.tree.LastZxid() {
		t.Fatalf("restored digest %x at %v, want %x at %v", restored.Digest(), restored.LastZxid(), s.tree.Digest(), s.tree.LastZxid())
	}
	if err := s.tree.Check(); err != nil {
		t.Fatal(err)
	}
	s.tree = restored
	if err := s.tree.Check(); err != nil {
		t.Fatalf("restored: %v", err)
	}
}

// addChanges writes changes to a disk.
func addChanges(t *rapid.T, disk map[string]string, changes *datatree.Changes) {
	before, records := "", 0
	if err := changes.Range(func(key, value []byte) error {
		if records++; string(key) <= before && records > 1 {
			t.Fatalf("key %q after %q", key, before)
		}
		before = string(key)
		if value == nil {
			delete(disk, before)
			return nil
		}
		disk[before] = string(value)
		return nil
	}); err != nil {
		t.Fatalf("Range: %v", err)
	}
	if n := changes.Len(); n != records {
		t.Fatalf("Len = %d, Range yields %d", n, records)
	}
}

// sorted ranges over m in key order. Like a database it may, each step reuses the memory of the
// previous one.
func sorted(m map[string]string) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		var kb, vb []byte
		for _, k := range slices.Sorted(maps.Keys(m)) {
			kb, vb = append(kb[:0], k...), append(vb[:0], m[k]...)
			if !yield(kb, vb) {
				return
			}
		}
	}
}
