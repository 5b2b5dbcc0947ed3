package generate

import (
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/test/compat/diff/exchange"
)

// watches: WatchManager, and DataTree for what triggers them.
var watches = []scenario{
	{"9.2/one-shot", func(s *script) {
		s.open(0, 1)
		s.send(1, existsW(root+"/a"), getW(root+"/none"), listW(root+"/none"), listW(root))
		s.send(0, s.create(root+"/a", ""), s.create(root+"/none", ""))
		s.send(1, existsW(root+"/a"), getW(root+"/a"), listW(root+"/a"))
		s.send(0, set(root+"/a", "x", -1), set(root+"/a", "y", -1), s.create(root+"/a/b", ""), del(root+"/a/b", -1), del(root+"/a", -1))
		s.send(1, ping())
	}},
	{"9.3/delete-once", func(s *script) {
		s.open(0, 1)
		s.send(0, s.create(root+"/a", ""))
		s.send(1, getW(root+"/a"), listW(root+"/a"), existsW(root+"/a"), listW(root))
		s.send(0, del(root+"/a", -1))
		s.send(1, ping())
	}},
	{"9.3/own-writes", func(s *script) {
		s.open(0)
		s.pipeline(0, existsW(root+"/a"), listW(root), s.create(root+"/a", ""), getW(root+"/a"), set(root+"/a", "x", -1), get(root+"/a"), set(root+"/a", "y", -1), del(root+"/a", -1))
	}},
	{"9.3/persistent", func(s *script) {
		s.open(0, 1)
		s.send(1, addWatch(root+"/a", 0), addWatch(root, 0))
		s.send(0, s.create(root+"/a", ""), set(root+"/a", "x", -1), s.create(root+"/a/b", ""), set(root+"/a/b", "x", -1), del(root+"/a/b", -1), del(root+"/a", -1), s.create(root+"/a", ""))
		s.send(1, removeWatches(root+"/a", 4))
		s.send(0, set(root+"/a", "y", -1))
		s.send(1, ping())
	}},
	{"9.3/recursive", func(s *script) {
		s.open(0, 1)
		s.send(1, addWatch(root+"/a", 1), listW(root))
		s.send(0, s.create(root+"/a", ""), s.create(root+"/ab", ""), s.create(root+"/a/b", ""), s.create(root+"/a/b/c", ""), set(root+"/a/b/c", "x", -1), del(root+"/a/b/c", -1))
		s.send(1, listW(root+"/a"), addWatch("/", 1), addWatch(root+"/a/b", 1))
		s.send(0, s.create(root+"/a/x", ""), del(root+"/a/b", -1), setPerms(root+"/a", openACL, -1))
		s.send(1, removeWatches(root+"/a", 5), removeWatches(root+"/a", 5), removeWatches("/", 3))
		s.send(0, set(root+"/a", "z", -1))
		s.send(1, ping())
	}},
	{"9.3/all-modes", func(s *script) {
		s.open(0, 1)
		s.send(0, s.create(root+"/a", ""))
		s.send(1, getW(root+"/a"), listW(root+"/a"), addWatch(root+"/a", 0), addWatch(root+"/a", 1))
		s.send(0, set(root+"/a", "x", -1), s.create(root+"/a/b", ""), set(root+"/a", "y", -1), del(root+"/a/b", -1), del(root+"/a", -1))
		s.send(1, ping())
	}},
	{"9.3/multi", func(s *script) {
		s.open(0, 1)
		s.send(0, s.create(root+"/a", ""))
		s.send(1, getW(root+"/a"), listW(root), addWatch(root, 1))
		s.send(0, together(set(root+"/a", "x", -1), del(root+"/a", -1), s.create(root+"/a", ""), s.create(root+"/b", "")), together(del(root+"/b", -1), check(root, 9)))
		s.send(1, ping())
	}},
	{"9.3/filtered", func(s *script) {
		closed, mine := perms(31, "digest", digest("bob:secret")), perms(31, "auth", "")
		s.open(0, 1)
		s.send(0, login("digest", "alice:secret"))
		s.send(1, existsW(root+"/a"), existsW(root+"/b"), addWatch(root, 1), listW(root))
		s.send(0, s.createAs(proto.OpCreate, root+"/a", 0, closed), s.createAs(proto.OpCreate, root+"/b", 0, mine), set(root+"/b", "x", -1), setPerms(root+"/b", openACL, -1), set(root+"/b", "y", -1))
		s.send(1, ping())
		s.send(0, setPerms(root, mine, -1), s.create(root+"/c", ""), del(root+"/a", -1))
		s.send(1, ping(), setWatches(0, []string{root + "/b"}, []string{root + "/a"}, []string{root}))
	}},
	{"9.4/set-watches", func(s *script) {
		s.open(0, 1)
		s.send(0, s.create(root+"/a", ""), s.create(root+"/b", ""), s.create(root+"/b/c", ""), set(root+"/a", "x", -1))
		all := []string{root, root + "/a", root + "/b", root + "/none", "bad//path", ""}
		s.send(1, setWatches(0, all, nil, nil), setWatches(0, nil, all, nil), setWatches(0, nil, nil, all), setWatches(0, all, all, all))
		s.send(1, setWatches(1<<62, all, all, all), setWatches(1<<62, nil, nil, nil, all, nil), setWatches(0, nil, nil, nil, nil, all))
		s.send(0, set(root+"/a", "y", -1), s.create(root+"/none", ""), s.create(root+"/b/d", ""), del(root+"/b/c", -1))
		s.with(1, proto.XidSetWatches, setWatches(1<<62, nil, nil, nil, nil, nil))
		of := 4
		s.step(exchange.Step{Conn: 1, Send: []exchange.Request{{Xid: 77, Op: proto.OpSetWatches, Body: setWatches(0, all, nil, all).body, ZxidOf: &of}}})
	}},
	{"9.5/check-and-remove", func(s *script) {
		s.open(0, 1)
		for typ := int32(0); typ <= 6; typ++ {
			s.send(1, checkWatches(root, typ), removeWatches(root, typ))
		}
		for _, r := range []req{getW(root), listW(root), addWatch(root, 0), addWatch(root, 1), existsW(root + "/none")} {
			s.send(1, r)
			for typ := int32(1); typ <= 5; typ++ {
				s.send(0, checkWatches(root, typ))
				s.send(1, checkWatches(root, typ), checkWatches(root+"/none", typ))
			}
			s.send(1, removeWatches(root, 1), removeWatches(root, 2), removeWatches(root, 4), removeWatches(root, 5), removeWatches(root, 3), removeWatches(root+"/none", 2))
		}
		s.send(1, addWatch(root, 2), addWatch(root, -1), getW(root), addWatch(root, 0), addWatch(root, 1), removeWatches(root, 3))
		s.send(0, set(root, "x", -1))
		s.send(1, ping())
	}},
	{"9/lost-with-the-connection", func(s *script) {
		s.open(0, 1)
		s.send(1, getW(root), addWatch(root, 1))
		s.handshake(2, exchange.Connect{Session: 1, How: exchange.HowResume})
		s.send(0, set(root, "x", -1))
		s.send(2, ping(), whoAmI())
	}},
}

// acls: ZooKeeperServer.checkACL and PrepRequestProcessor.fixupACL.
var acls = []scenario{
	{"10.2/fix-up", func(s *script) {
		s.open(0, 1)
		s.send(1, login("digest", "alice:secret"), login("digest", "bob:secret"))
		entries := []acl{{31, text("world"), text("anyone")}, {31, text("world"), text("somebody")}, {31, text("auth"), text("")}, {31, text("auth"), nil}, {31, nil, text("anyone")},
			{31, text("world"), nil}, {31, text("digest"), nil}, {31, text("super"), text("")}, {31, text("nosuch"), text("x")}, {0, text("world"), text("anyone")}, {32, text("world"), text("anyone")},
			{-1, text("world"), text("anyone")}}
		for _, id := range []string{"a:b", ":b", "a:b:", "a", "a:", "a:b:c", "a::b", "", ":", "x:\U0001f600", "x:ü"} {
			entries = append(entries, acl{31, text("digest"), text(id)})
		}
		for _, id := range []string{"127.0.0.1", "127.0.0.1/32", "127.0.0.0/8", "0.0.0.0/0", "127.0.0.1/33", "127.0.0.1/-1", "127.0.0.1/x", "127.0.0.1/", "127.0.0", "256.1.1.1", "1.2.3.4.5", "", "localhost", "::1", "::1/128", "::1/129", "fe80::/10", "::ffff:127.0.0.1", "01.2.3.4", " 1.2.3.4"} {
			entries = append(entries, acl{31, text("ip"), text(id)})
		}
		for _, e := range entries {
			p := root + "/x"
			s.send(0, s.createAs(proto.OpCreate, p, 0, []acl{e}))
			s.send(1, login("digest", "super:admin"), getACL(p), del(p, -1))
		}
		one := acl{31, text("world"), text("anyone")}
		s.send(0, s.createAs(proto.OpCreate, root+"/dup", 0, []acl{one, {1, text("ip"), text("127.0.0.1")}, one, {1, text("world"), text("anyone")}}), getACL(root+"/dup"))
	}},
	{"10.2/auth", func(s *script) {
		s.open(0)
		s.send(0, s.createAs(proto.OpCreate, root+"/a", 0, perms(31, "auth", "")), login("digest", "alice:secret"), login("digest", "bob:secret"),
			s.createAs(proto.OpCreate, root+"/a", 0, perms(3, "auth", "x")), getACL(root+"/a"), setPerms(root+"/a", append(perms(31, "auth", ""), perms(1, "world", "anyone")...), -1), getACL(root+"/a"))
	}},
	{"10.3/permissions", func(s *script) {
		s.open(0, 1)
		s.send(0, login("digest", "super:admin"))
		for _, p := range []int32{0, 1, 2, 4, 8, 16, 32} {
			s.send(0, s.createAs(proto.OpCreate, root+"/p", 0, perms(p, "world", "anyone")), s.createAs(proto.OpCreate, root+"/p/c", 0, openACL))
			s.send(1, exists(root+"/p"), get(root+"/p"), list(root+"/p"), getACL(root+"/p"), set(root+"/p", "x", -1), setPerms(root+"/p", perms(p, "world", "anyone"), -1),
				s.create(root+"/p/d", ""), del(root+"/p/d", -1), del(root+"/p/c", -1), together(check(root+"/p", -1)), exists(root+"/p/none"), addWatch(root+"/p", 0), syncPath(root+"/p"))
			s.send(0, del(root+"/p/c", -1), del(root+"/p/d", -1), del(root+"/p", -1))
		}
	}},
	{"10.3/who", func(s *script) {
		s.open(0, 1, 2)
		s.send(0, login("digest", "alice:secret"), s.createAs(proto.OpCreate, root+"/d", 0, perms(31, "digest", digest("alice:secret"))), s.createAs(proto.OpCreate, root+"/i", 0, perms(31, "ip", "127.0.0.0/8")),
			s.createAs(proto.OpCreate, root+"/o", 0, perms(31, "ip", "10.0.0.0/8")), s.createAs(proto.OpCreate, root+"/l", 0, perms(31, "ip", "127.0.0.1")))
		for c := range 3 {
			if c == 2 {
				s.send(c, login("digest", "super:admin"))
			}
			s.send(c, get(root+"/d"), get(root+"/i"), get(root+"/o"), get(root+"/l"), getACL(root+"/d"), whoAmI())
		}
		s.send(2, s.create("/zookeeper/config/x", ""), del("/zookeeper/config/x", -1), del("/zookeeper/config", -1))
	}},
	{"10.4/digest", func(s *script) {
		s.open(0)
		for _, d := range []string{"", "nocolon", ":", "a:b:c", "super:wrong", "alice:secret", "alice:secret", "\xff:\xfe", "ü:ö"} {
			s.send(0, login("digest", d), whoAmI())
		}
	}},
	{"10.5/masking", func(s *script) {
		s.open(0, 1)
		list := append(perms(31, "digest", digest("alice:secret")), acl{1, text("world"), text("anyone")}, acl{1, text("digest"), text("x:y")}, acl{1, text("ip"), text("127.0.0.1")})
		s.send(0, s.createAs(proto.OpCreate, root+"/a", 0, list), getACL(root+"/a"), login("digest", "alice:secret"), getACL(root+"/a"))
		s.send(1, login("digest", "super:admin"), getACL(root+"/a"))
	}},
	{"10/private-leaf", func(s *script) {
		s.open(0, 1)
		s.send(0, s.createAs(proto.OpCreate, root+"/a", 0, perms(31, "digest", digest("alice:secret"))))
		s.send(1, exists(root+"/a"), set(root+"/a", "x", -1), del(root+"/a", -1))
	}},
}

// quotas: ZooKeeperServer.checkQuota and StatsTrack.
var quotas = []scenario{
	{"11.1/hard-limits", func(s *script) {
		q := "/zookeeper/quota" + root
		s.open(0)
		limits := func(p, content string) req {
			return req{proto.OpCreate, create{path: text(p + "/zookeeper_limits"), data: []byte(content), acl: openACL}.body(proto.OpCreate)}
		}
		s.send(0, s.create(q, ""), limits(q, "count=-1,bytes=-1=;byteHardLimit=20;countHardLimit=4"), s.createAs(proto.OpCreate, q+"/zookeeper_stats", 0, openACL), get(q+"/zookeeper_stats"))
		s.send(0, s.create(root+"/a", ""), s.create(root+"/b", ""), s.create(root+"/c", ""), s.create(root+"/d", ""), s.create(root+"/a", ""), get(q+"/zookeeper_stats"),
			set(root+"/a", "0123456789abcdef", -1), set(root+"/a", "0123456789abcdefghijk", 9), set(root+"/a", "", -1), get(q+"/zookeeper_stats"), del(root+"/b", -1), s.create(root+"/e", ""),
			s.createAs(proto.OpCreate, root+"/f", 1, openACL), get(q+"/zookeeper_stats"), set(q+"/zookeeper_limits", "nonsense", -1), set(root+"/a", "x", -1), s.create(root+"/g", ""),
			set(q+"/zookeeper_limits", "count=1,bytes=1", -1), s.create(root+"/g", ""), del(q+"/zookeeper_limits", -1), s.create(root+"/h", ""), get(q+"/zookeeper_stats"))
	}},
	{"11.1/without-counts", func(s *script) {
		q := "/zookeeper/quota" + root
		s.open(0)
		s.send(0, s.create(q, ""), s.create(q+"/zookeeper_limits", "count=-1,bytes=-1=;byteHardLimit=5;countHardLimit=1"), s.create(root+"/a", "x"), s.create(root+"/b", "0123456789"),
			set(root+"/a", "0123456789", -1), s.create(q+"/zookeeper_stats", ""), get(q+"/zookeeper_stats"), s.create(root+"/c", ""), del(q+"/zookeeper_stats", -1), s.create(root+"/c", ""))
	}},
	{"11.1/bad-text-in-a-multi", func(s *script) {
		q := "/zookeeper/quota" + root
		s.open(0)
		s.send(0, s.create(q, ""), s.create(q+"/zookeeper_limits", "nonsense"), s.create(q+"/zookeeper_stats", ""), s.create(root+"/a", ""), together(s.create(root+"/a", "")),
			together(check(root, 0), s.create(root+"/a", "")), together(check(root, 9), s.create(root+"/a", "")), exists(root+"/a"))
	}},
}
