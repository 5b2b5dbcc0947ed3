package generate

import (
	"bytes"
	"slices"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/test/compat/diff/exchange"
)

var yes, no = true, false

// handshakes: ZooKeeperServer.processConnectRequest, and SessionTrackerImpl for the sessions.
var handshakes = []scenario{
	{"1.2/readonly-byte", func(s *script) {
		s.open(0)
		s.handshake(1, exchange.Connect{Session: 1, How: exchange.HowNew, ReadOnly: &no})
		s.handshake(2, exchange.Connect{Session: 2, How: exchange.HowNew, ReadOnly: &yes})
		s.send(2, s.create(root+"/a", "written by a client that would take a read-only server"))
	}},
	{"1.2/timeouts", func(s *script) {
		for i, ms := range []int32{-5, 1, 25000, 1e9} {
			s.handshake(i, exchange.Connect{Session: i, How: exchange.HowNew, TimeoutMs: ms})
		}
		s.handshake(0, exchange.Connect{Session: 2, How: exchange.HowResume, TimeoutMs: 30000})
	}},
	{"1.2/passwords-of-new-sessions", func(s *script) {
		for i, p := range []exchange.Hex{nil, {}, make(exchange.Hex, 16), exchange.Hex("of another length")} {
			s.handshake(i, exchange.Connect{Session: i, How: exchange.HowNew, Passwd: p, Protocol: int32(i)})
		}
	}},
	{"1.2/last-zxid", func(s *script) {
		s.open(0)
		s.handshake(1, exchange.Connect{Session: 1, How: exchange.HowNew, LastZxid: exchange.ZxidSeen})
		s.handshake(2, exchange.Connect{Session: 2, How: exchange.HowNew, LastZxid: exchange.ZxidNegative})
		s.handshake(3, exchange.Connect{Session: 3, How: exchange.HowNew, LastZxid: exchange.ZxidAhead})
		s.handshake(3, exchange.Connect{Session: 0, How: exchange.HowResume, LastZxid: exchange.ZxidAhead})
		s.send(0, ping())
	}},
	{"1.2/resume", func(s *script) {
		s.open(0)
		s.send(0, s.createAs(proto.OpCreate, root+"/e", 1, openACL))
		s.handshake(1, exchange.Connect{Session: 0, How: exchange.HowResume, ReadOnly: &no})
		s.send(0, ping()) // closed: the other connection has the session
		s.send(1, exists(root+"/e"), set(root+"/e", "x", 0))
		s.step(exchange.Step{Conn: 1, Drop: true})
		s.handshake(2, exchange.Connect{Session: 0, How: exchange.HowResume})
		s.send(2, exists(root+"/e"))
		s.last(2, closeSession())
		s.handshake(3, exchange.Connect{Session: 0, How: exchange.HowResume})
	}},
	{"1.2/refused", func(s *script) {
		s.open(0)
		s.handshake(1, exchange.Connect{Session: 1, How: exchange.HowUnknown})
		s.handshake(1, exchange.Connect{Session: 1, How: exchange.HowUnknown, ReadOnly: &no})
		s.handshake(1, exchange.Connect{Session: 0, How: exchange.HowWrongPasswd})
	}},
	{"8/close", func(s *script) {
		s.open(0, 1)
		s.send(0, s.createAs(proto.OpCreate, root+"/e1", 1, openACL), s.createAs(proto.OpCreate, root+"/e", 3, openACL), existsW(root+"/e1"))
		s.send(1, listW(root), existsW(root+"/e1"), existsW(root+"/e0000000001"))
		s.last(0, closeSession())
		s.send(1, ping(), list(root), exists(root))
	}},
	{"8/re-created-by-another", func(s *script) {
		s.open(0, 1)
		s.send(0, s.createAs(proto.OpCreate, root+"/e", 1, openACL))
		s.send(1, del(root+"/e", -1), s.create(root+"/e", "mine"))
		s.last(0, closeSession())
		s.send(1, get(root+"/e"))
	}},
	{"8/close-behind-creates", func(s *script) {
		s.open(0, 1)
		s.send(1, listW(root))
		s.step(exchange.Step{Conn: 0, Closes: true, Send: s.number(0, []req{
			s.createAs(proto.OpCreate2, root+"/x", 1, openACL), s.createAs(proto.OpCreate2, root+"/y", 0, openACL), closeSession()})})
		s.send(1, list(root))
	}},
}

// headers: NIOServerCnxn.readLength and ZooKeeperServer.processPacket.
var headers = []scenario{
	{"1.3/xids", func(s *script) {
		s.open(0)
		for _, xid := range []int32{0, -7, -77, 5, 5, 1<<31 - 1, -1 << 31} {
			s.with(0, xid, exists(root))
		}
		s.with(0, proto.XidPing, ping())
		s.with(0, 9, ping())
		s.with(0, proto.XidPing, exists(root))
	}},
	{"1.3/ping-in-order", func(s *script) {
		s.open(0)
		s.pipeline(0, s.create(root+"/a", ""), s.create(root+"/b", ""), ping(), set(root+"/a", "x", -1), ping())
	}},
	{"1.3/auth", func(s *script) {
		s.open(0, 1, 2)
		s.with(0, proto.XidAuth, login("digest", "alice:secret"))
		s.with(0, 9, login("digest", "alice:secret"))
		s.with(0, proto.XidAuth, login("ip", ""))
		s.send(0, whoAmI())
		s.step(exchange.Step{Conn: 1, Closes: true, Send: []exchange.Request{{Xid: proto.XidAuth, Op: proto.OpAuth, Body: auth(text("nosuch"), nil)}}})
		s.handshake(1, exchange.Connect{Session: 1, How: exchange.HowResume})
		s.send(1, whoAmI())
		s.last(2, req{proto.OpAuth, auth(text("digest"), nil)})
	}},
	{"1.3/sasl", func(s *script) {
		s.open(0)
		s.send(0, req{proto.OpSASL, jute.AppendBuffer(nil, []byte("token"))}, ping())
	}},
	{"1.3/unknown-ops", func(s *script) {
		s.open(0)
		for i, op := range unknownOps {
			s.handshake(1, exchange.Connect{Session: i + 1, How: exchange.HowNew})
			s.last(1, req{op, pathInt(text(root), -1)})
		}
	}},
	{"1.1/bad-frames", func(s *script) {
		s.open(0)
		for i, frame := range []string{"\x00\x00\x00\x00", "\xff\xff\xff\xff", "\x7f\xff\xff\xff", "\x00\x10\x00\x00", "\x00\x00\x00\x04abcd", "ruok"} {
			s.handshake(1, exchange.Connect{Session: i + 1, How: exchange.HowNew})
			s.step(exchange.Step{Conn: 1, Raw: exchange.Hex(frame), Closes: true})
		}
		s.send(0, ping())
	}},
	{"4/bad-records", func(s *script) {
		s.open(0)
		for _, r := range []req{s.create(root+"/a", "x"), set(root, "x", -1), del(root+"/a", -1), setPerms(root, openACL, -1), exists(root), get(root), list(root), getACL(root),
			together(check(root, 0)), addWatch(root, 0), removeWatches(root, 3), checkWatches(root, 3), setWatches(0, nil, nil, nil),
			syncPath(root), {proto.OpGetEphemerals, jute.AppendString(nil, "/")}, {proto.OpGetAllChildrenNumber, jute.AppendString(nil, "/")}} {
			s.send(0, req{r.op, nil}, req{r.op, r.body[:len(r.body)-1]}, req{r.op, jute.AppendInt(nil, 1<<30)}, req{r.op, append(slices.Clone(r.body), 1, 2, 3)})
			if rest, ok := bytes.CutPrefix(r.body, jute.AppendString(nil, root)); ok {
				s.send(0, req{r.op, append(jute.AppendInt(nil, -1), rest...)}) // a null path
			}
		}
		s.send(0, req{proto.OpCreate, jute.AppendInt(jute.AppendInt(jute.AppendInt(jute.AppendString(nil, root+"/n"), -1), -5), 0)}) // no data, -5 entries
		s.send(0, req{proto.OpCreate, create{path: text(root + "/n"), acl: openACL}.body(proto.OpCreate)}, get(root+"/n"), set(root+"/n", "", -1), get(root+"/n"),
			req{proto.OpSetData, setData(text(root+"/n"), nil, -1)}, get(root+"/n"))
	}},
}
