package datatree_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
)

// kind says when a znode is deleted automatically.
type kind int

const (
	persistent kind = iota
	ephemeral
	container
	ttl
)

// modelNode is a znode of the model.
type modelNode struct {
	data                []byte
	acl                 []proto.ACL
	czxid, mzxid, pzxid proto.Zxid
	ctime, mtime        int64
	version, aversion   int32
	created             int32 // number of children ever created: ZooKeeper's internal cversion
	kind                kind
	owner               proto.SessionID
	ttl                 int64
	birth               bool // one of the four initial znodes, never written: null or empty data is not specified
}

type modelSession struct {
	timeout int32
	passwd  [proto.PasswdBytes]byte
	epoch   proto.Zxid
	server  uint8
}

// model is the tree as the protocol describes it, written without looking at the implementation and
// without regard to cost: a map of paths, which a multi copies as a whole.
type model struct {
	nodes    map[string]*modelNode
	sessions map[proto.SessionID]modelSession
	last     proto.Zxid
	ensemble modelEnsemble
}

type modelEvent struct {
	typ  proto.EventType
	path string
	acl  []proto.ACL
}

// outcome is what the model expects of a request.
type outcome struct {
	err     proto.ErrCode
	path    string
	stat    proto.Stat
	multi   []proto.MultiResult
	failed  bool
	session proto.SessionID
	pending bool
	serial  proto.Zxid
	data    []byte
	events  []modelEvent
}

func newModel() *model {
	m := &model{nodes: make(map[string]*modelNode), sessions: make(map[proto.SessionID]modelSession)}
	for _, p := range []string{"/", "/zookeeper", "/zookeeper/quota"} {
		m.nodes[p] = &modelNode{acl: proto.OpenACL(), birth: true}
	}
	m.nodes["/zookeeper/config"] = &modelNode{acl: proto.ReadACL(), aversion: -1, birth: true}
	return m
}

func (m *model) clone() *model {
	c := &model{nodes: make(map[string]*modelNode), sessions: maps.Clone(m.sessions), last: m.last, ensemble: m.ensemble}
	for p, n := range m.nodes {
		twin := *n
		c.nodes[p] = &twin
	}
	return c
}

// at returns the znode at path; "" is the root, in lookups and as a parent.
func (m *model) at(path string) *modelNode {
	if path == "" {
		path = "/"
	}
	return m.nodes[path]
}

func parentOf(path string) string {
	if i := strings.LastIndex(path, "/"); i > 0 {
		return path[:i]
	}
	return "/"
}

func (m *model) children(path string) []string {
	names := []string{}
	for p := range m.nodes {
		if p != "/" && parentOf(p) == path {
			names = append(names, p[strings.LastIndex(p, "/")+1:])
		}
	}
	slices.Sort(names)
	return names
}

// below reports whether p is path or under it.
func below(p, path string) bool { return path == "/" || p == path || strings.HasPrefix(p, path+"/") }

func (m *model) stat(path string) proto.Stat {
	n := m.at(path)
	if path == "" {
		path = "/"
	}
	children := int32(len(m.children(path)))
	return proto.Stat{
		Czxid: n.czxid, Mzxid: n.mzxid, Pzxid: n.pzxid, CtimeMs: n.ctime, MtimeMs: n.mtime,
		Version: n.version, Cversion: 2*n.created - children, Aversion: n.aversion,
		EphemeralOwner: n.owner, DataLength: int32(len(n.data)), NumChildren: children,
	}
}

// validPath checks whole paths, by characters.
func validPath(path string) bool {
	if path == "" || path[0] != '/' || len(path) > 1 && strings.HasSuffix(path, "/") {
		return false
	}
	for _, name := range strings.Split(path[1:], "/") {
		if name == "." || name == ".." || name == "" && path != "/" {
			return false
		}
	}
	for _, r := range path { // malformed UTF-8 is read as U+FFFD
		if r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0 {
			return false
		}
	}
	return true
}

// hasParent is the first check of a path in create and delete.
func hasParent(path string) bool {
	return strings.Contains(path, "/") && !strings.Contains(path, "\x00")
}

// env is what all parts of a request share.
type env struct {
	h   datatree.Header
	req *datatree.Request
}

func (m *model) allowed(e env, n *modelNode, p proto.Perms) bool {
	return permitted(n.acl, p, datatree.Caller{IDs: e.req.IDs, SkipACL: e.req.Flags&datatree.FlagSkipACL != 0})
}

// tooLong reports whether a reply of that size would exceed jute.maxbuffer. Data that nobody could
// read is not written.
func tooLong(e env, reply int) bool { return e.req.MaxBuffer > 0 && reply > int(e.req.MaxBuffer) }

// dataReply is the size of a reply to getData: header, length, data, Stat.
func dataReply(data []byte) int { return 16 + 4 + len(data) + 68 }

// childrenReply is the size of a reply to getChildren2: header, count, names with their lengths,
// Stat.
func childrenReply(names []string) int {
	size := 16 + 4 + 68
	for _, name := range names {
		size += 4 + len(name)
	}
	return size
}

// aclReply is the size of a reply to getACL: header, count, entries, Stat.
func aclReply(list []proto.ACL) int {
	size := 16 + 4 + 68
	for _, a := range list {
		size += 4 + 4 + len(a.ID.Scheme) + 4 + len(a.ID.ID)
	}
	return size
}

// create executes all kinds of create. inMulti changes the meaning of flags (spec 2.1 and 2.4). The
// outcome has the final path and the Stat, for the stats znode of a quota the Stat before it is
// filled in.
func (m *model) create(e env, c *proto.CreateRequest, op proto.OpCode, inMulti bool) outcome {
	if c.Mode < 0 || c.Mode > 6 {
		return outcome{err: proto.ErrBadArguments}
	}
	hasTTL := c.Mode == 5 || c.Mode == 6
	n := &modelNode{data: c.Data}
	switch {
	case op == proto.OpCreateTTL && !hasTTL && !inMulti, op != proto.OpCreateTTL && hasTTL:
		return outcome{err: proto.ErrBadArguments}
	case hasTTL:
		if c.TTL <= 0 || c.TTL > 1<<40-1 {
			return outcome{err: proto.ErrBadArguments}
		}
		n.kind, n.ttl = ttl, c.TTL
	case op == proto.OpCreateContainer, inMulti && c.Mode == proto.ModeContainer:
		n.kind = container
	case c.Mode == 1 || c.Mode == 3:
		n.kind, n.owner = ephemeral, e.req.Session
	}
	if !hasParent(c.Path) {
		return outcome{err: proto.ErrBadArguments}
	}
	acl, code := fixACL(e, c.ACL)
	if code != proto.OK {
		return outcome{err: code}
	}
	parentPath := c.Path[:strings.LastIndex(c.Path, "/")]
	parent := m.at(parentPath)
	if parent == nil {
		return outcome{err: proto.ErrNoNode}
	}
	if !m.allowed(e, parent, proto.PermCreate) {
		return outcome{err: proto.ErrNoAuth}
	}
	path := c.Path
	if c.Mode == 2 || c.Mode == 3 || c.Mode == 6 {
		path += fmt.Sprintf("%010d", parent.created)
	}
	switch {
	case !validPath(path):
		return outcome{err: proto.ErrBadArguments}
	case m.at(path) != nil:
		return outcome{err: proto.ErrNodeExists}
	case parent.kind == ephemeral:
		return outcome{err: proto.ErrNoChildrenForEphemerals}
	}
	if code := m.quotaAllows(e, path, int64(len(c.Data)), 1); code != proto.OK {
		return outcome{err: code}
	}
	if tooLong(e, dataReply(c.Data)) || tooLong(e, childrenReply(append(m.children(parentOf(path)), path[strings.LastIndex(path, "/")+1:]))) {
		return outcome{err: proto.ErrMarshallingError}
	}
	n.acl = acl
	n.czxid, n.mzxid, n.pzxid, n.ctime, n.mtime = e.h.Zxid, e.h.Zxid, e.h.Zxid, e.h.TimeMs, e.h.TimeMs
	m.nodes[path] = n
	parent.created++
	parent.pzxid = e.h.Zxid
	out := outcome{path: path, stat: m.stat(path), events: []modelEvent{
		{proto.EventCreated, path, acl}, {proto.EventChildrenChanged, parentOf(path), parent.acl},
	}}
	m.recount()
	return out
}

// remove deletes a znode without a check.
func (m *model) remove(e env, path string) []modelEvent {
	n, parent := m.nodes[path], m.nodes[parentOf(path)]
	delete(m.nodes, path)
	m.recount()
	parent.pzxid = e.h.Zxid
	return []modelEvent{{proto.EventDeleted, path, n.acl}, {proto.EventChildrenChanged, parentOf(path), parent.acl}}
}

func deletable(path string) bool {
	switch path {
	case "/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config":
		return false
	}
	return hasParent(path)
}

func wrongVersion(want, is int32) bool { return want != -1 && want != is }

func (m *model) delete(e env, path string, version int32) ([]modelEvent, proto.ErrCode) {
	if !deletable(path) {
		return nil, proto.ErrBadArguments
	}
	parent := m.at(path[:strings.LastIndex(path, "/")])
	if parent == nil {
		return nil, proto.ErrNoNode
	}
	if !m.allowed(e, parent, proto.PermDelete) {
		return nil, proto.ErrNoAuth
	}
	n := m.nodes[path]
	switch {
	case n == nil:
		return nil, proto.ErrNoNode
	case wrongVersion(version, n.version):
		return nil, proto.ErrBadVersion
	case len(m.children(path)) > 0:
		return nil, proto.ErrNotEmpty
	}
	return m.remove(e, path), proto.OK
}

// deleteContainer is stricter than ZooKeeper's, which also deletes a persistent znode, and a TTL
// znode that was written after it became a candidate (spec 17).
func (m *model) deleteContainer(e env, path string, czxid proto.Zxid) ([]modelEvent, proto.ErrCode) {
	if !deletable(path) {
		return nil, proto.ErrBadArguments
	}
	n := m.nodes[path]
	switch {
	case n == nil:
		return nil, proto.ErrNoNode
	case len(m.children(path)) > 0:
		return nil, proto.ErrNotEmpty
	case n.kind != container && !(n.kind == ttl && e.h.TimeMs-n.mtime > n.ttl), czxid != n.czxid:
		return nil, proto.ErrBadVersion
	}
	return m.remove(e, path), proto.OK
}

func (m *model) setData(e env, r *proto.SetDataRequest) ([]modelEvent, proto.ErrCode) {
	if !validPath(r.Path) {
		return nil, proto.ErrBadArguments
	}
	n := m.nodes[r.Path]
	if n == nil {
		return nil, proto.ErrNoNode
	}
	if !m.allowed(e, n, proto.PermWrite) {
		return nil, proto.ErrNoAuth
	}
	delta := int64(len(r.Data)) - int64(len(n.data))
	if code := m.quotaAllows(e, r.Path, delta, 0); code != proto.OK {
		return nil, code
	}
	if wrongVersion(r.Version, n.version) {
		return nil, proto.ErrBadVersion
	}
	if tooLong(e, dataReply(r.Data)) {
		return nil, proto.ErrMarshallingError
	}
	n.data, n.birth = r.Data, false
	n.version++
	n.mzxid, n.mtime = e.h.Zxid, e.h.TimeMs
	m.recount()
	return []modelEvent{{proto.EventDataChanged, r.Path, n.acl}}, proto.OK
}

func (m *model) setACL(e env, r *proto.SetACLRequest) proto.ErrCode {
	if !validPath(r.Path) {
		return proto.ErrBadArguments
	}
	acl, code := fixACL(e, r.ACL)
	if code != proto.OK {
		return code
	}
	n := m.nodes[r.Path]
	switch {
	case n == nil:
		return proto.ErrNoNode
	case !m.allowed(e, n, proto.PermAdmin):
		return proto.ErrNoAuth
	case wrongVersion(r.Version, n.aversion):
		return proto.ErrBadVersion
	}
	n.acl = acl
	n.aversion++
	return proto.OK
}

func (m *model) check(e env, path string, version int32) proto.ErrCode {
	if !validPath(path) {
		return proto.ErrBadArguments
	}
	n := m.nodes[path]
	switch {
	case n == nil:
		return proto.ErrNoNode
	case !m.allowed(e, n, proto.PermRead):
		return proto.ErrNoAuth
	case wrongVersion(version, n.version):
		return proto.ErrBadVersion
	}
	return proto.OK
}

// multi executes the operations on a copy, which it keeps if all succeed.
func (m *model) multi(e env, ops []proto.MultiOp) outcome {
	for _, op := range ops { // refused by the decoder, before any check
		// A createTTL is refused later, as ZooKeeper 3.9.5 does.
		isCreate := op.Op == proto.OpCreate || op.Op == proto.OpCreate2 || op.Op == proto.OpCreateContainer
		if isCreate && (op.Mode < 0 || op.Mode > 4 || op.ACL == nil) {
			return outcome{err: proto.ErrMarshallingError}
		}
	}
	trial := m.clone()
	var out outcome
	for i, op := range ops {
		res, events, code := trial.subOp(e, &op)
		if code == proto.ErrMarshallingError { // an unreadable limits znode, as in 3.9.5, or jute.maxbuffer
			return outcome{err: code}
		}
		if code != proto.OK {
			out = outcome{failed: true, multi: make([]proto.MultiResult, len(ops))}
			for j := range ops {
				out.multi[j] = proto.MultiResult{Op: proto.OpError}
				if j > i {
					out.multi[j].Err = proto.ErrRuntimeInconsistency
				}
			}
			out.multi[i].Err = code
			return out
		}
		out.multi = append(out.multi, res)
		out.events = append(out.events, events...)
	}
	*m = *trial
	return out
}

func (m *model) subOp(e env, op *proto.MultiOp) (proto.MultiResult, []modelEvent, proto.ErrCode) {
	switch op.Op {
	case proto.OpDelete:
		events, code := m.delete(e, op.Path, op.Version)
		return proto.MultiResult{Op: op.Op}, events, code
	case proto.OpCheck:
		return proto.MultiResult{Op: op.Op}, nil, m.check(e, op.Path, op.Version)
	case proto.OpSetData:
		events, code := m.setData(e, &proto.SetDataRequest{Path: op.Path, Data: op.Data, Version: op.Version})
		if code != proto.OK {
			return proto.MultiResult{}, nil, code
		}
		return proto.MultiResult{Op: op.Op, Stat: m.stat(op.Path)}, events, code
	}
	c := proto.CreateRequest{Path: op.Path, Data: op.Data, ACL: op.ACL, Mode: op.Mode, TTL: op.TTL}
	out := m.create(e, &c, op.Op, true)
	res := proto.MultiResult{Op: proto.OpCreate2, Path: out.path, Stat: out.stat}
	if plain := op.Mode < 4; plain && (op.Op == proto.OpCreate || op.Op == proto.OpCreateTTL) {
		res.Op = proto.OpCreate
	}
	return res, out.events, out.err
}

// closeSession deletes the session's ephemerals in the order of their paths.
func (m *model) closeSession(e env) []modelEvent {
	var events []modelEvent
	for _, path := range slices.Sorted(maps.Keys(m.nodes)) {
		if n := m.nodes[path]; n.kind == ephemeral && n.owner == e.req.Session {
			events = append(events, m.remove(e, path)...)
		}
	}
	delete(m.sessions, e.req.Session)
	return events
}

// collectable lists containers without children and TTL znodes whose time is over.
func (m *model) collectable(nowMs, neverUsedMs int64) []string {
	paths := []string{}
	for path, n := range m.nodes {
		idle := nowMs - n.mtime
		used := n.created > 0
		if len(m.children(path)) == 0 &&
			(n.kind == container && (used || neverUsedMs != 0 && idle > neverUsedMs) || n.kind == ttl && idle > n.ttl) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}
