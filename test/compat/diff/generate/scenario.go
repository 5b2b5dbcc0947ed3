package generate

import (
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/test/compat/diff/exchange"
)

// Scenarios returns the hand-written sequences: for each rule of the protocol that a client
// can see, requests that show it. The right replies are recorded from ZooKeeper.
func Scenarios() []*exchange.Sequence {
	var all []*exchange.Sequence
	for _, list := range [][]scenario{handshakes, headers, paths, operations, checks, multis, watches, acls, quotas} {
		for _, sc := range list {
			s := &script{gen: gen{seq: &exchange.Sequence{Name: sc.name}, conns: make([]conn, 4)}}
			sc.play(s)
			all = append(all, s.seq)
		}
	}
	return all
}

type scenario struct {
	name string
	play func(s *script)
}

// script is a sequence under construction.
type script struct{ gen }

// open connects slot conn for its new session, and on conn 0 creates the root of the sequence.
func (s *script) open(conns ...int) {
	for _, c := range conns {
		s.handshake(c, exchange.Connect{Session: c, How: exchange.HowNew})
		if c == 0 {
			s.send(0, s.create(root, "root"))
		}
	}
}

func (s *script) handshake(conn int, h exchange.Connect) {
	if h.TimeoutMs == 0 {
		h.TimeoutMs = 30000
	}
	refused := h.How == exchange.HowWrongPasswd || h.How == exchange.HowUnknown || h.LastZxid == exchange.ZxidAhead
	s.step(exchange.Step{Conn: conn, Connect: &h, Closes: refused})
}

// req is a request without its xid.
type req struct {
	op   proto.OpCode
	body []byte
}

// send sends requests, each after the previous reply.
func (s *script) send(conn int, list ...req) {
	for _, r := range list {
		s.pipeline(conn, r)
	}
}

// pipeline sends requests in a single segment.
func (s *script) pipeline(conn int, list ...req) {
	s.step(exchange.Step{Conn: conn, Send: s.number(conn, list)})
}

// last sends a request and awaits the server's close.
func (s *script) last(conn int, r req) {
	s.step(exchange.Step{Conn: conn, Send: s.number(conn, []req{r}), Closes: true})
}

func (s *script) number(conn int, list []req) []exchange.Request {
	var out []exchange.Request
	for _, r := range list {
		s.conns[conn].xid++
		out = append(out, exchange.Request{Xid: s.conns[conn].xid, Op: r.op, Body: r.body})
	}
	return out
}

// with sends a request with an xid of its own.
func (s *script) with(conn int, xid int32, r req) {
	s.step(exchange.Step{Conn: conn, Send: []exchange.Request{{Xid: xid, Op: r.op, Body: r.body}}})
}

func (s *script) create(path, data string) req {
	return req{proto.OpCreate2, create{path: text(path), data: []byte(data), acl: openACL}.body(proto.OpCreate2)}
}

func (s *script) createAs(op proto.OpCode, path string, mode int32, list []acl) req {
	return req{op, create{path: text(path), data: []byte("data"), acl: list, mode: mode}.body(op)}
}

func (s *script) createTTL(path string, mode int32, ttl int64) req {
	return req{proto.OpCreateTTL, create{path: text(path), data: []byte("data"), acl: openACL, mode: mode, ttl: ttl}.body(proto.OpCreateTTL)}
}

func del(path string, version int32) req { return req{proto.OpDelete, pathInt(text(path), version)} }
func set(path, data string, version int32) req {
	return req{proto.OpSetData, setData(text(path), []byte(data), version)}
}
func get(path string) req      { return req{proto.OpGetData, pathBool(text(path), false)} }
func getW(path string) req     { return req{proto.OpGetData, pathBool(text(path), true)} }
func exists(path string) req   { return req{proto.OpExists, pathBool(text(path), false)} }
func existsW(path string) req  { return req{proto.OpExists, pathBool(text(path), true)} }
func list(path string) req     { return req{proto.OpGetChildren2, pathBool(text(path), false)} }
func listW(path string) req    { return req{proto.OpGetChildren2, pathBool(text(path), true)} }
func getACL(path string) req   { return req{proto.OpGetACL, jute.AppendString(nil, path)} }
func ping() req                { return req{proto.OpPing, nil} }
func closeSession() req        { return req{proto.OpCloseSession, nil} }
func whoAmI() req              { return req{proto.OpWhoAmI, nil} }
func syncPath(path string) req { return req{proto.OpSync, jute.AppendString(nil, path)} }
func setPerms(path string, list []acl, version int32) req {
	return req{proto.OpSetACL, setACL(text(path), list, version)}
}
func login(scheme, data string) req { return req{proto.OpAuth, auth(text(scheme), []byte(data))} }
func addWatch(path string, mode int32) req {
	return req{proto.OpAddWatch, pathInt(text(path), mode)}
}
func checkWatches(path string, typ int32) req {
	return req{proto.OpCheckWatches, pathInt(text(path), typ)}
}
func removeWatches(path string, typ int32) req {
	return req{proto.OpRemoveWatches, pathInt(text(path), typ)}
}

// setWatches returns a setWatches2 with the lists of paths.
func setWatches(zxid int64, lists ...[]string) req {
	b := jute.AppendLong(nil, zxid)
	op := proto.OpSetWatches
	if len(lists) == 5 {
		op = proto.OpSetWatches2
	}
	for _, l := range lists {
		if l == nil {
			l = []string{}
		}
		b = jute.AppendStrings(b, l)
	}
	return req{op, b}
}

// together returns a multi, or a multiRead if all its operations are reads.
func together(list ...req) req {
	m := req{op: proto.OpMulti}
	for _, r := range list {
		if r.op == proto.OpGetData || r.op == proto.OpGetChildren {
			m.op = proto.OpMultiRead
		}
		m.body = append(multiHeader(m.body, r.op, false), r.body...)
	}
	m.body = multiHeader(m.body, -1, true)
	return m
}

func check(path string, version int32) req { return req{proto.OpCheck, pathInt(text(path), version)} }

// perms returns a list with a single entry.
func perms(p int32, scheme, id string) []acl { return []acl{{p, text(scheme), text(id)}} }
