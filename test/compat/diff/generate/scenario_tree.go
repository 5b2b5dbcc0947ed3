package generate

import (
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// paths: PathUtils.validatePath, and what PrepRequestProcessor does with sequential names.
var paths = []scenario{
	{"5.1/create", func(s *script) {
		s.open(0)
		for _, p := range []string{"", "a", "ab", "a/b", "//", "/", root + "/", root + "//x", root + "/.", root + "/..", root + "/...", root + "/.x", root + "/x.", "/.", root + "/./x",
			root + "/\x00", root + "/\x01", root + "/\x1f", root + "/ ", root + "/\x7f", root + "/\u009f", root + "/\u00a0", root + "/\ud7ff", root + "/\ue000", root + "/\uf8ff",
			root + "/\uf900", root + "/\uffef", root + "/\ufff0", root + "/\ufffd", root + "/\xff", root + "/\U0001f600", root + "/missing/x"} {
			s.send(0, s.createAs(proto.OpCreate, p, 0, openACL))
		}
		s.send(0, list(root))
	}},
	{"5.1/other-ops", func(s *script) {
		s.open(0)
		for _, p := range []string{"", "a", "/", root + "/", root + "//x", root + "/.", root + "/x\x00", "//"} {
			s.send(0, exists(p), get(p), list(p), getACL(p), set(p, "x", 77), setPerms(p, openACL, 77), del(p, 77), together(check(p, 77)), syncPath(p),
				req{proto.OpGetAllChildrenNumber, jute.AppendString(nil, p)}, addWatch(p, 0))
		}
	}},
	{"5.1/null", func(s *script) {
		s.open(0)
		for mode := int32(0); mode <= 3; mode++ {
			for _, entries := range [][]acl{openACL, {}} {
				body := create{data: []byte("x"), acl: entries, mode: mode}
				for _, op := range []proto.OpCode{proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer} {
					s.send(0, req{op, body.body(op)})
				}
			}
		}
		ttl := create{acl: openACL, mode: 5, ttl: 1e9}
		s.send(0, req{proto.OpCreateTTL, ttl.body(proto.OpCreateTTL)}, together(check(root, -1), req{proto.OpCreate, create{acl: openACL}.body(proto.OpCreate)}),
			together(req{proto.OpDelete, pathInt(nil, -1)}), together(req{proto.OpSetData, setData(nil, nil, -1)}), together(req{proto.OpCheck, pathInt(nil, -1)}),
			together(req{proto.OpGetData, pathBool(nil, false)}), together(req{proto.OpGetChildren, pathBool(nil, false)}))
		nulls := jute.AppendInt(jute.AppendInt(nil, 1), -1) // a list of one path that is null
		for i := range 5 {
			b := jute.AppendLong(nil, 0)
			for k := range 5 {
				if k == i {
					b = append(b, nulls...)
				} else {
					b = jute.AppendInt(b, 0)
				}
			}
			s.send(0, req{proto.OpSetWatches2, b})
		}
	}},
	{"5.2/system-nodes", func(s *script) {
		s.open(0)
		for _, p := range []string{"/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"} {
			s.send(0, s.createAs(proto.OpCreate, p, 0, openACL), del(p, -1), exists(p), get(p), getACL(p), list(p))
		}
		s.send(0, set("/zookeeper/config", "x", -1), setPerms("/zookeeper/config", openACL, -1), s.create("/zookeeper/config/x", ""))
		s.send(0, s.create("/zookeeper/x", ""), s.createAs(proto.OpCreate, "/zookeeper/x/s", 2, openACL), exists("/zookeeper"), del("/zookeeper/x/s0000000000", -1), del("/zookeeper/x", -1))
	}},
	{"5.3/sequential", func(s *script) {
		s.open(0)
		s.send(0, s.create(root+"/plain", ""), s.createAs(proto.OpCreate, root+"/s", 2, openACL), s.createAs(proto.OpCreate2, root+"/s", 3, openACL), del(root+"/s0000000001", -1),
			s.createAs(proto.OpCreate, root+"/s", 2, openACL), s.createAs(proto.OpCreate, root+"/", 2, openACL), s.createAs(proto.OpCreate, root+"/.", 2, openACL),
			s.createAs(proto.OpCreate, root+"//", 2, openACL), s.createTTL(root+"/t", 6, 1e9), s.createAs(proto.OpCreate, root+"/plain/s", 2, openACL), list(root), exists(root))
		s.send(0, together(s.createAs(proto.OpCreate, root+"/m", 2, openACL), s.createAs(proto.OpCreate, root+"/m", 2, openACL), check(root+"/none", -1)),
			s.createAs(proto.OpCreate, root+"/after", 2, openACL))
		s.send(0, del(root+"/plain/s0000000000", -1), del(root+"/plain", -1), s.create(root+"/plain", ""), s.createAs(proto.OpCreate, root+"/plain/s", 2, openACL))
	}},
}

// operations: FinalRequestProcessor, and DataTree.processTxn for the Stats.
var operations = []scenario{
	{"2.1/create-kinds", func(s *script) {
		s.open(0)
		for i, op := range []proto.OpCode{proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer} {
			for mode := int32(-1); mode <= 7; mode++ {
				p := root + "/" + string(rune('a'+i)) + string(rune('1'+mode))
				s.send(0, s.createAs(op, p, mode, openACL), exists(p))
			}
		}
		for mode := int32(-1); mode <= 7; mode++ {
			for _, ttl := range []int64{0, 1e9} {
				s.send(0, s.createTTL(root+"/t"+string(rune('1'+mode)), mode, ttl))
			}
		}
		for _, ttl := range []int64{-1, 0, 1<<40 - 1, 1 << 40} {
			s.send(0, s.createTTL(root+"/ttl", 5, ttl))
		}
		s.send(0, exists(root+"/ttl"), list(root))
	}},
	{"2.1/reads", func(s *script) {
		s.open(0, 1)
		s.send(0, s.create(root+"/a", ""), s.create(root+"/a/b", ""), s.createAs(proto.OpCreate, root+"/e", 1, openACL), s.createAs(proto.OpCreate, root+"/e5", 1, openACL))
		s.send(0, exists(root+"/e"), get(root+"/a"), req{proto.OpGetChildren, pathBool(text(root), false)}, list(root), getACL(root), syncPath(root), syncPath("/none"),
			req{proto.OpSync, jute.AppendInt(nil, -1)}, req{proto.OpGetAllChildrenNumber, jute.AppendString(nil, root)}, whoAmI())
		for _, prefix := range []string{"", "/", " ", root, root + "/e", root + "/e5", "/none"} {
			s.send(0, req{proto.OpGetEphemerals, jute.AppendString(nil, prefix)})
		}
		s.send(0, req{proto.OpGetEphemerals, jute.AppendInt(nil, -1)})
		s.send(1, req{proto.OpGetEphemerals, jute.AppendString(nil, root)})
		s.send(0, exists(root+"/none"), get(root+"/none"), list(root+"/none"), getACL(root+"/none"), req{proto.OpGetAllChildrenNumber, jute.AppendString(nil, root+"/none")})
		s.send(0, req{proto.OpReconfig, jute.AppendLong(jute.AppendInt(jute.AppendInt(jute.AppendInt(nil, -1), -1), -1), -1)})
	}},
	{"6/stat", func(s *script) {
		s.open(0, 1)
		s.send(0, exists(root), s.create(root+"/a", ""), exists(root), set(root+"/a", "x", 0), set(root+"/a", "x", 1), exists(root), setPerms(root+"/a", openACL, 0), setPerms(root+"/a", openACL, 1), exists(root+"/a"),
			s.createAs(proto.OpCreate2, root+"/e", 1, openACL), exists(root), del(root+"/a", 2), exists(root), set(root, "", -1), exists(root), s.create(root+"/a", ""), exists(root+"/a"))
		s.send(1, exists(root+"/e"))
		s.last(0, closeSession())
		s.send(1, exists(root), list(root))
	}},
}

// checks: the order in which PrepRequestProcessor.pRequest2Txn checks a write. Each request is
// wrong in two ways at least.
var checks = []scenario{
	{"7/create", func(s *script) {
		none := []acl{}
		s.open(0, 1)
		s.send(0, s.createAs(proto.OpCreate, root+"/e", 1, openACL), s.createAs(proto.OpCreate, root+"/closed", 0, perms(1, "world", "anyone")))
		for _, r := range []req{
			s.createAs(proto.OpCreate, root+"/none/x", 0, none), s.createAs(proto.OpCreate, root+"/none/x", 9, openACL), s.createAs(proto.OpCreate, root, 0, none),
			s.createAs(proto.OpCreate, "/.", 0, none), s.createAs(proto.OpCreate, "/x/", 0, none), s.createAs(proto.OpCreate, "x", 0, none), s.createAs(proto.OpCreate, "x", 9, none),
			s.createAs(proto.OpCreate, root+"/closed", 0, none), s.createAs(proto.OpCreate, root+"/closed/x", 0, none), s.createAs(proto.OpCreate, root+"/closed/.", 0, openACL),
			s.createAs(proto.OpCreate, root+"/closed/x", 0, openACL), s.createAs(proto.OpCreate, root+"/e/x", 0, openACL), s.createAs(proto.OpCreate, root+"/e/x", 1, openACL),
			s.createAs(proto.OpCreate, root+"/e/.", 1, openACL), s.createAs(proto.OpCreate, root+"/none/.", 0, openACL), s.createTTL(root+"/none/x", 5, 0), s.createAs(proto.OpCreateContainer, root+"/e/c", 4, openACL),
		} {
			s.send(1, r)
		}
	}},
	{"7/delete-set", func(s *script) {
		s.open(0, 1)
		s.send(0, s.create(root+"/a", ""), s.create(root+"/a/b", ""), s.createAs(proto.OpCreate, root+"/c", 0, openACL), s.create(root+"/c/d", ""), setPerms(root+"/c", perms(1, "world", "anyone"), -1))
		s.send(1, del(root+"/a", 5), del(root+"/a", 0), del(root+"/c/none", -1), del(root+"/c/d", 5), del(root+"/none/x", -1), del(root+"/none", 3), del("/", 5), del("x", -1),
			set(root+"/c", "x", 7), set(root+"/c/d", "x", 7), set(root+"/none", "x", 7), set("/.", "x", 7), set(root+"/c/d", "x", -2),
			setPerms(root+"/c", openACL, 9), setPerms(root+"/none", []acl{}, 9), setPerms("/.", []acl{}, 9), setPerms(root+"/c", []acl{}, 9), setPerms(root+"/a", openACL, 9),
			together(check(root+"/c", 9)), together(check(root+"/none", 9)), together(check("/.", 9)), together(check(root+"/a", 9)), together(check(root+"/a", -1)))
	}},
	{"7/versions", func(s *script) {
		s.open(0)
		for _, v := range []int32{0, 1, 3, 2, -1, -2} {
			s.send(0, set(root, "x", v), setPerms(root, openACL, v))
		}
		s.send(0, s.create(root+"/a", ""), set(root+"/a", "y", 0), del(root+"/a", 0), del(root+"/a", -2), del(root+"/a", 1))
	}},
}

// multis: MultiOperationRecord, and the case OpCode.multi of PrepRequestProcessor and DataTree.
var multis = []scenario{
	{"2.4/success", func(s *script) {
		s.open(0, 1)
		s.send(1, listW(root), addWatch(root, 1))
		s.send(0, together(s.createAs(proto.OpCreate, root+"/a", 0, openACL), s.createAs(proto.OpCreate2, root+"/a/b", 0, openACL), set(root+"/a", "x", 0), check(root+"/a", 1), del(root+"/a/b", 0),
			s.createAs(proto.OpCreateContainer, root+"/c", 4, openACL), s.createTTL(root+"/t", 5, 1e9), s.createAs(proto.OpCreate, root+"/s", 2, openACL), s.createAs(proto.OpCreate, root+"/s", 3, openACL)))
		s.send(1, list(root))
		s.send(0, together(), req{proto.OpMulti, multiHeader(nil, 1, true)}, together(check(root, 0)))
	}},
	{"2.4/failure", func(s *script) {
		s.open(0, 1)
		s.send(1, listW(root), existsW(root+"/a"))
		s.send(0, together(s.create(root+"/a", ""), check(root, 9), s.create(root+"/b", "")), together(check(root, 9), check(root, 9)), together(del(root+"/none", -1)),
			together(s.createAs(proto.OpCreate, root+"/s", 2, openACL), set(root+"/none", "", -1)), s.createAs(proto.OpCreate, root+"/s", 2, openACL),
			together(s.create(root+"/a", ""), s.create(root+"/a", "")), together(s.create(root+"/x", ""), set(root+"/x", "", 1)), together(set(root, "a", 0), set(root, "b", 0)))
		s.send(1, list(root))
	}},
	{"2.4/not-in-a-multi", func(s *script) {
		s.open(0)
		for _, r := range []req{setPerms(root, openACL, -1), exists(root), syncPath(root), {proto.OpGetData, pathBool(text(root), false)}, list(root), closeSession(), {77, nil}, {proto.OpError, nil}} {
			m := req{proto.OpMulti, multiHeader(append(multiHeader(nil, r.op, false), r.body...), -1, true)}
			s.send(0, m, req{proto.OpMultiRead, m.body})
		}
		m := together(s.create(root+"/a", ""))
		s.send(0, req{proto.OpMulti, m.body[:len(m.body)-9]}, req{proto.OpMulti, nil}, req{proto.OpMulti, m.body[:20]}, exists(root+"/a"))
		s.send(0, together(del(root+"/none", -1), s.createTTL(root+"/t", 99, 1e9)), together(s.createTTL(root+"/t", 99, 1e9)), together(s.createTTL(root+"/t", -1, -1)),
			together(s.createTTL(root+"/t", 5, -1)), together(s.createTTL(root+"/t", 5, 0)))
		for mode := int32(3); mode <= 7; mode++ {
			s.send(0, together(s.createAs(proto.OpCreate, root+"/m"+string(rune('0'+mode)), mode, openACL)), together(s.createTTL(root+"/t"+string(rune('0'+mode)), mode-3, -1)))
		}
		s.send(0, list(root))
	}},
	{"2.4/multi-read", func(s *script) {
		s.open(0)
		children := func(p string) req { return req{proto.OpGetChildren, pathBool(text(p), true)} }
		s.send(0, s.createAs(proto.OpCreate, root+"/closed", 0, perms(2, "world", "anyone")))
		s.send(0, together(get(root), children(root), get(root+"/none"), children(root+"/closed"), getW(root)), req{proto.OpMultiRead, multiHeader(nil, -1, true)},
			req{proto.OpMultiRead, together(get(root), s.create(root+"/x", "")).body}, req{proto.OpMultiRead, nil})
		s.send(0, set(root, "x", -1), s.create(root+"/b", ""))
	}},
}
