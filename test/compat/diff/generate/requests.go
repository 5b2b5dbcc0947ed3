package generate

import (
	"bytes"
	_ "embed" // scenarios.txt
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/test/compat/diff/exchange"
)

// weights holds the relative frequency of each operation. Operations that close the connection are
// drawn elsewhere.
var weights = []struct {
	op proto.OpCode
	n  int
}{
	{proto.OpCreate, 130}, {proto.OpCreate2, 70}, {proto.OpCreateContainer, 30}, {proto.OpCreateTTL, 30},
	{proto.OpDelete, 80}, {proto.OpSetData, 80}, {proto.OpSetACL, 45},
	{proto.OpExists, 70}, {proto.OpGetData, 70}, {proto.OpGetChildren, 35}, {proto.OpGetChildren2, 35}, {proto.OpGetACL, 35},
	{proto.OpSync, 10}, {proto.OpPing, 10}, {proto.OpMulti, 70}, {proto.OpMultiRead, 25}, {proto.OpReconfig, 5},
	{proto.OpCheckWatches, 25}, {proto.OpRemoveWatches, 25}, {proto.OpAddWatch, 40},
	{proto.OpSetWatches, 15}, {proto.OpSetWatches2, 15},
	{proto.OpGetEphemerals, 15}, {proto.OpGetAllChildrenNumber, 15}, {proto.OpWhoAmI, 10}, {proto.OpAuth, 20}, {proto.OpSASL, 3},
}

var totalWeight = func() int {
	n := 0
	for _, w := range weights {
		n += w.n
	}
	return n
}()

func (g *gen) op() proto.OpCode {
	n := g.IntN(totalWeight)
	for _, w := range weights {
		if n -= w.n; n < 0 {
			return w.op
		}
	}
	panic("generate: weights do not add up")
}

// anyRequest returns a request of op, sometimes with a damaged body.
func (g *gen) anyRequest(slot int, op proto.OpCode) exchange.Request {
	body := g.body(op)
	if g.chance(30) && op != proto.OpAuth && op != proto.OpSASL {
		if damaged := g.damage(body); !kills(op, damaged) && !locks(op, damaged) && !ahead(op, damaged) && !g.stops(op, body, damaged) {
			body = damaged
		}
	}
	r := g.request(slot, op, body)
	if (op == proto.OpSetWatches || op == proto.OpSetWatches2) && g.chance(600) && len(body) >= 8 {
		step := g.IntN(len(g.seq.Steps))
		r.ZxidOf = &step
	}
	return r
}

func (g *gen) body(op proto.OpCode) []byte {
	switch op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		if g.chance(40) {
			return g.quotaNode().body(op)
		}
		return g.create(op).body(op)
	case proto.OpDelete:
		return body("delete %s %d", g.path(), g.version())
	case proto.OpSetData:
		if g.quotas && g.chance(100) {
			return body("setData %q %s -1", "/zookeeper/quota"+g.plainPath()+"/zookeeper_limits", g.quotaText())
		}
		return body("setData %s %s %d", g.path(), g.data(), g.version())
	case proto.OpSetACL:
		return g.setACL()
	case proto.OpExists, proto.OpGetData, proto.OpGetChildren, proto.OpGetChildren2:
		return body("exists %s %t", g.path(), g.chance(450))
	case proto.OpGetACL, proto.OpGetAllChildrenNumber, proto.OpSync:
		return body("sync %s", g.path())
	case proto.OpGetEphemerals:
		return body("sync %s", one(g, g.path(), q(root), q(root+"/"), null, q(""), q("/"), q(" ")))
	case proto.OpMulti:
		return g.multi()
	case proto.OpMultiRead:
		return g.multiRead()
	case proto.OpReconfig:
		arg := func() string { return one(g, null, q(""), q("server.2=127.0.0.1:1:2;3"), q("x")) }
		return body("reconfig %s %s %s %d", arg(), arg(), arg(), one(g, -1, 0, 5))
	case proto.OpCheckWatches, proto.OpRemoveWatches:
		return body("checkWatches %s %d", g.path(), one(g, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 5, 5, 0, 6, -1))
	case proto.OpAddWatch:
		return body("addWatch %s %d", g.path(), one(g, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 2, -1))
	case proto.OpSetWatches, proto.OpSetWatches2:
		zxid := one[int64](g, 0, -1, 1, 1<<62)
		if op == proto.OpSetWatches {
			return body("setWatches %d %s %s %s", zxid, g.paths(), g.paths(), g.paths())
		}
		return body("setWatches2 %d %s %s %s %s %s", zxid, g.paths(), g.paths(), g.paths(), g.paths(), g.paths())
	case proto.OpAuth:
		return g.goodAuth()
	case proto.OpSASL:
		return body("sasl %q", one(g, "", "token", "\x00", "\x01\x02"))
	}
	return nil // ping, whoAmI
}

// create returns the record of a create. In a multi any mode is fine; outside, a createTTL without
// a TTL mode has no negative ttl, which would end ZooKeeper for good: EphemeralType.TTL throws
// whenever DataTree applies the transaction.
func (g *gen) create(op proto.OpCode) create {
	c := create{path: g.path(), data: g.data(), acl: g.acls(), mode: one[int32](g, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3)}
	switch op {
	case proto.OpCreateContainer:
		c.mode = one[int32](g, 4, 4, 4, 4, 0, 2) // not 1, see container-mode
	case proto.OpCreateTTL:
		c.mode, c.ttl = one[int32](g, 5, 5, 6), one[int64](g, 1e9, 1e9, 1e9, 1e9, 1e9, 1e9, 1<<40-1, 1<<40-1, 1<<40, 0, -1, -1<<63)
		if g.chance(100) {
			c.mode, c.ttl = one[int32](g, 0, 1, 2, 4), one[int64](g, 0, 1e9)
		}
	}
	if g.chance(20) {
		c.mode = one[int32](g, 4, 5, 6, 7, -1, 1<<31-1)
		c.ttl = max(c.ttl, 0)
	}
	// A sequential name contains its parent's counter: seldom more than a few.
	if c.path != null && (c.mode == 2 || c.mode == 3 || c.mode == 6) && len(g.names) < 20 {
		g.names = append(g.names, must.Get(strconv.Unquote(c.path))+one(g, "0000000000", "0000000001", "0000000002"))
	}
	return c
}

// quota puts a quota on the root, limits and counts, as the clients' tools do.
func (g *gen) quota() {
	g.quotas = true
	path := "/zookeeper/quota" + root
	var send []exchange.Request
	for _, c := range []create{
		{path: q(path), data: null, acl: openACL},
		{path: q(path + "/zookeeper_limits"), data: g.quotaText(), acl: openACL},
		{path: q(path + "/zookeeper_stats"), data: q("count=0,bytes=0"), acl: openACL},
	} {
		send = append(send, g.request(0, proto.OpCreate, c.body(proto.OpCreate)))
	}
	g.step(exchange.Step{Send: send})
}

// quotaNode returns a create of a quota's znodes, or of their parents.
func (g *gen) quotaNode() create {
	g.quotas = true
	path := "/zookeeper/quota" + root
	if g.chance(300) {
		path += "/" + one(g, "a", "b")
	}
	switch g.IntN(4) {
	case 0:
		return create{path: q(path), data: null, acl: openACL}
	case 1:
		return create{path: q(path + "/zookeeper_stats"), data: q("count=0,bytes=0"), acl: openACL}
	}
	return create{path: q(path + "/zookeeper_limits"), data: g.quotaText(), acl: openACL}
}

// setACL returns the record of a setACL. Znodes that all sequences share stay open: a closed root
// would leave later sequences nothing to compare.
func (g *gen) setACL() []byte {
	path, list := g.path(), g.acls()
	if !strings.Contains(path, root) {
		list = openACL
	}
	return body("setACL %s %s %d", path, list, g.version())
}

func (g *gen) paths() string {
	if g.chance(30) {
		return null
	}
	list := make([]string, one(g, 0, 0, 1, 1, 2))
	for i := range list {
		list[i] = g.path()
		if g.members > 1 && list[i] == q("/zookeeper/config") {
			list[i] = q(root) // its mzxid decides whether there is an event, see reconfig-zxids
		}
	}
	return fmt.Sprint(list)
}

// damage returns body with an error in it or after it.
func (g *gen) damage(body []byte) []byte {
	b := append([]byte(nil), body...)
	switch g.IntN(5) {
	case 0:
		return append(b, g.bytes(1+g.IntN(8))...) // trailing bytes mean nothing
	case 1, 2:
		return b[:g.IntN(len(b)+1)]
	case 3: // a length, maybe
		if len(b) >= 4 {
			at := 0
			if g.chance(500) {
				at = g.IntN(len(b) - 3)
			}
			binary.BigEndian.PutUint32(b[at:], one[uint32](g, 0xffffffff, 0xfffffffe, 0x7fffffff, 0, 1, 0x00100000))
		}
		return b
	}
	if len(b) > 0 {
		b[g.IntN(len(b))] = byte(g.IntN(256))
	}
	return b
}

// kills reports whether the body is a createTTL that ends ZooKeeper for good.
func kills(op proto.OpCode, body []byte) bool {
	if op != proto.OpCreateTTL {
		return false
	}
	d := jute.NewDecoder(body)
	var c proto.CreateRequest
	c.Decode(&d, op)
	return d.Err() == nil && !c.Mode.TTL() && c.TTL < 0
}

// stops reports whether the damaged body of a write may be one after which a ZooKeeper ensemble
// answers no write any more, see malformed-write. Bytes after the end do no harm.
func (g *gen) stops(op proto.OpCode, body, damaged []byte) bool {
	return g.members > 1 && op.Info().Write && !bytes.HasPrefix(damaged, body)
}

// ahead reports whether the body is a setWatches with a zxid between the servers' own, which means
// something else on each.
func ahead(op proto.OpCode, body []byte) bool {
	if op != proto.OpSetWatches && op != proto.OpSetWatches2 {
		return false
	}
	d := jute.NewDecoder(body)
	zxid := d.Long()
	return zxid > 1 && zxid < 1<<61
}

// locks reports whether the body is a setACL of a znode outside the sequence's root; see setACL.
func locks(op proto.OpCode, body []byte) bool {
	if op != proto.OpSetACL {
		return false
	}
	d := jute.NewDecoder(body)
	var r proto.SetACLRequest
	r.Decode(&d)
	return d.Err() == nil && !strings.HasPrefix(r.Path, root)
}

// Bodies are made from requests in words, with null where package proto has a string.

const null = "null"

// q returns a string in words.
func q[T string | []byte](s T) string { return strconv.Quote(string(s)) }

// body returns the body of a request in words.
func body(format string, args ...any) []byte {
	_, b := must.Get2(exchange.ParseRequest(fmt.Sprintf(format, args...)))
	return b
}

// create is the record of a create, its strings in words.
type create struct {
	path, data, acl string
	mode            int32
	ttl             int64
}

func (c create) body(op proto.OpCode) []byte {
	if op == proto.OpCreateTTL {
		return body("createTTL %s %s %s %d %d", c.path, c.data, c.acl, c.mode, c.ttl)
	}
	return body("create %s %s %s %d", c.path, c.data, c.acl, c.mode)
}

// OwnRule is a sequence that must never be sent to a ZooKeeper, and gozkd's error code for the
// first request of its last step.
type OwnRule struct {
	Sequence *exchange.Sequence
	Err      proto.ErrCode
}

//go:embed scenarios.txt
var scenarios string

// Scenarios returns the hand-written sequences.
func Scenarios() []*exchange.Sequence { return must.Get(exchange.ReadScript(scenarios)) }

// OwnRules returns the requests that ZooKeeper answers in ways that gozkd does not copy; see
// docs/reference/differences.md.
func OwnRules() []OwnRule {
	var rules []OwnRule
	add := func(name string, err proto.ErrCode, request string) {
		const script = "sequence %s\nconnect 0\n0 create2 %q \"root\" open 0\n0 %s\n"
		sequences := must.Get(exchange.ReadScript(fmt.Sprintf(script, name, root, request)))
		rules = append(rules, OwnRule{sequences[0], err})
	}
	for mode := range 5 {
		add(fmt.Sprintf("ttl-crash/mode-%d", mode), proto.ErrBadArguments, fmt.Sprintf(`createTTL "%s/x" "data" open %d -1`, root, mode))
	}
	add("delete-container", proto.ErrBadArguments, fmt.Sprintf("deleteContainer %q", root))
	add("create-session-op", proto.ErrUnimplemented, `closes createSession raw "\x00\x00\x75\x30"`)
	return rules
}

// multi returns the body of a multi: a few writes and checks, sometimes with a misplaced operation.
func (g *gen) multi() []byte {
	g.inMulti = true
	defer func() { g.inMulti = false }()
	var b []byte
	for range one(g, 0, 1, 1, 2, 2, 3, 3, 4, 6) {
		op := one(g, proto.OpCreate, proto.OpCreate, proto.OpCreate2, proto.OpDelete, proto.OpSetData, proto.OpSetData, proto.OpCheck)
		switch {
		case g.chance(30):
			op = one(g, proto.OpCreateContainer, proto.OpCreateTTL)
		case g.chance(15):
			op = one(g, proto.OpSetACL, proto.OpExists, proto.OpGetData, proto.OpGetChildren, proto.OpSync, 77, proto.OpError)
		}
		b = proto.AppendMultiHeader(b, op, false, -1)
		switch op {
		case proto.OpCheck:
			b = append(b, body("check %s %d", g.path(), g.version())...)
		case 77, proto.OpError:
		default:
			b = append(b, g.body(op)...)
		}
	}
	return g.terminate(b)
}

// multiRead returns the body of a multiRead, sometimes with a write in it.
func (g *gen) multiRead() []byte {
	var b []byte
	for range one(g, 0, 1, 2, 3, 5) {
		op := one(g, proto.OpGetData, proto.OpGetChildren)
		if g.chance(20) {
			op = one(g, proto.OpExists, proto.OpCreate, proto.OpGetChildren2)
		}
		b = append(proto.AppendMultiHeader(b, op, false, -1), g.body(op)...)
	}
	return g.terminate(b)
}

func (g *gen) terminate(b []byte) []byte {
	switch {
	case g.chance(10):
		return b // without an end
	case g.chance(20):
		return proto.AppendMultiHeader(b, 1, true, 5) // only done counts
	}
	return proto.AppendMultiHeader(b, -1, true, -1)
}
