package datatree_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/proto"
	"pgregory.net/rapid"
)

// callers are the identities of requests.
var callers = [][]proto.ID{
	{{Scheme: "ip", ID: "127.0.0.1"}},
	{{Scheme: "ip", ID: "127.0.0.1"}, {Scheme: "digest", ID: "alice:aa="}},
	{{Scheme: "ip", ID: "10.1.2.3"}, {Scheme: "digest", ID: "bob:bb="}, {Scheme: "digest", ID: "carol:cc="}},
	{{Scheme: "ip", ID: "::1"}},
	{{Scheme: "ip", ID: "10.1.2.3"}, {Scheme: "digest", ID: "super:ss="}, {Scheme: "super", ID: ""}},
}

var anyIDs = rapid.SampledFrom(callers)

// oddPaths are special paths, and paths that the operations treat differently.
var oddPaths = []string{
	"", "/", "//", "a", "a/b", "ab", "/a/", "/a//b", "/.", "/..", "/a/.", "/a/../b", "/...", "/.a", "/a.", "/a b",
	"/a\x00b", "\x00", "/a\x01", "/a\x7f", "/a\u0085", "/a\u00a0", "/\u00e9", "/a\ue000", "/a\uf8ff", "/a\uf900", "/a\uffef",
	"/a\ufff0", "/a\ufffd", "/a\U0001f600", "/a\xff", "/a\xed\xa0\x80", "/aa", "/missing/x",
	"/zookeeper", "/zookeeper/quota", "/zookeeper/config", "/zookeeper/config/x", "/zookeeper/x", "/zookeeper/",
}

// quotaPaths make up a quota for /q, one within it, and one without meaning.
var quotaPaths = []string{
	"/q", "/q/zookeeper_limits", "/q/zookeeper_stats", "/q/a", "/q/a/zookeeper_limits", "/q/a/zookeeper_stats",
	"/zookeeper", "/zookeeper/zookeeper_limits", "/zookeeper_limits",
}

var names = rapid.SampledFrom([]string{"a", "b", "c", "aa", "x-", ""})

// existing draws a path of the tree.
func (s *machine) existing(t *rapid.T) string {
	return rapid.SampledFrom(slices.Sorted(maps.Keys(s.model.nodes))).Draw(t, "existing")
}

// path draws a path for a request that expects a znode.
func (s *machine) path(t *rapid.T) string {
	if rapid.IntRange(0, 7).Draw(t, "odd") == 7 {
		return rapid.SampledFrom(oddPaths).Draw(t, "path")
	}
	return s.existing(t)
}

// newPath draws a path for a create: mostly below an existing znode, rarely below /zookeeper.
func (s *machine) newPath(t *rapid.T) string {
	switch rapid.IntRange(0, 9).Draw(t, "odd") {
	case 9:
		return rapid.SampledFrom(oddPaths).Draw(t, "path")
	case 8:
		return s.existing(t)
	case 7:
		return quotaRoot + rapid.SampledFrom(quotaPaths).Draw(t, "quota")
	case 6, 5:
		return rapid.SampledFrom([]string{"/q", "/q/a", "/q/a/b", "/q/b"}).Draw(t, "path")
	}
	parent := s.existing(t)
	if parent == "/" {
		parent = ""
	}
	return parent + "/" + names.Draw(t, "name")
}

// data draws null, empty, or unique bytes.
func (s *machine) data(t *rapid.T) []byte {
	switch n := rapid.IntRange(0, 9).Draw(t, "data"); n {
	case 0:
		return nil
	case 1:
		return []byte{}
	default:
		switch n {
		case 8:
			n = 2000 // large enough to be stored separately
		case 9:
			n = 40 // more than MaxBuffer of some requests allows
		}
		s.unique++
		return fmt.Appendf(nil, "%0*d", n, s.unique)
	}
}

var quotaTexts = rapid.SampledFrom([]string{
	"count=3,bytes=10", "count=-1,bytes=-1=;byteHardLimit=9;countHardLimit=-1", "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=3",
	"count=4,bytes=20;byteHardLimit=20;countHardLimit=2", "nonsense", "count=1,bytes=1=;byteHardLimit=6;countHardLimit=4",
})

// dataFor draws data that fits the path: quota text for limits.
func (s *machine) dataFor(t *rapid.T, path string) []byte {
	if strings.HasSuffix(path, "/zookeeper_limits") {
		return []byte(quotaTexts.Draw(t, "limits"))
	}
	return s.data(t)
}

var perms = rapid.OneOf(rapid.Just(proto.PermAll), rapid.Map(rapid.Int32Range(0, 63), func(n int32) proto.Perms { return proto.Perms(n) }))

var aclIDs = rapid.SampledFrom([]proto.ID{
	{Scheme: "world", ID: "anyone"}, {Scheme: "auth"}, {Scheme: "auth", ID: "whatever"},
	{Scheme: "digest", ID: "alice:aa="}, {Scheme: "digest", ID: "bob:bb="}, {Scheme: "digest", ID: "x:y"},
	{Scheme: "digest", ID: ":b"}, {Scheme: "digest", ID: "a:b:"},
	{Scheme: "ip", ID: "127.0.0.1"}, {Scheme: "ip", ID: "127.9.9.9/8"}, {Scheme: "ip", ID: "10.1.2.3/32"}, {Scheme: "ip", ID: "0.0.0.0/0"},
	{Scheme: "ip", ID: "::1"}, {Scheme: "ip", ID: "::/0"},
})

var badACLs = rapid.SampledFrom([][]proto.ACL{
	nil, {},
	{{Perms: 31, ID: proto.ID{Scheme: "world", ID: "x"}}}, {{Perms: 31, ID: proto.ID{Scheme: "super"}}},
	{{Perms: 31, ID: proto.ID{Scheme: "nonsense", ID: "x"}}}, {{Perms: 31, ID: proto.ID{}}},
	{{Perms: 31, ID: proto.ID{Scheme: "digest", ID: "a"}}}, {{Perms: 31, ID: proto.ID{Scheme: "digest", ID: "a:"}}},
	{{Perms: 31, ID: proto.ID{Scheme: "digest", ID: "a:b:c"}}}, {{Perms: 31, ID: proto.ID{Scheme: "digest", ID: "a::b"}}},
	{{Perms: 31, ID: proto.ID{Scheme: "digest", ID: ""}}}, {{Perms: 31, ID: proto.ID{Scheme: "digest", ID: "::"}}},
	{{Perms: 31, ID: proto.ID{Scheme: "ip", ID: "300.1.1.1"}}}, {{Perms: 31, ID: proto.ID{Scheme: "ip", ID: "1.2.3"}}},
	{{Perms: 31, ID: proto.ID{Scheme: "ip", ID: "1.2.3.4/33"}}}, {{Perms: 31, ID: proto.ID{Scheme: "ip", ID: "1.2.3.4/-1"}}},
	{{Perms: 31, ID: proto.ID{Scheme: "ip", ID: "1.2.3.4/"}}}, {{Perms: 31, ID: proto.ID{Scheme: "ip", ID: "::1/129"}}},
	{{Perms: 31, ID: proto.ID{Scheme: "world", ID: "anyone"}}, {Perms: 1, ID: proto.ID{Scheme: "ip", ID: "x"}}},
})

func acl(t *rapid.T) []proto.ACL {
	switch n := rapid.IntRange(0, 9).Draw(t, "acl"); {
	case n < 5:
		return proto.OpenACL()
	case n == 9:
		return badACLs.Draw(t, "bad")
	}
	entry := rapid.Custom(func(t *rapid.T) proto.ACL { return proto.ACL{Perms: perms.Draw(t, "perms"), ID: aclIDs.Draw(t, "id")} })
	return rapid.SliceOfN(entry, 1, 3).Draw(t, "list")
}

// version draws a version that is often right.
func (s *machine) version(t *rapid.T, path string, of func(*modelNode) int32) int32 {
	n := s.model.at(path)
	if n == nil || rapid.IntRange(0, 3).Draw(t, "guess") == 0 {
		return rapid.SampledFrom([]int32{-1, -1, 0, 1, 2, -2}).Draw(t, "version")
	}
	return of(n)
}

func (s *machine) createRequest(t *rapid.T) *proto.CreateRequest {
	path := s.newPath(t)
	return &proto.CreateRequest{
		Path: path, Data: s.dataFor(t, path), ACL: acl(t),
		Mode: proto.CreateMode(rapid.SampledFrom([]int32{0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, -1}).Draw(t, "mode")),
		TTL:  rapid.SampledFrom([]int64{1, 50, 500, 0, -1, 1<<40 - 1, 1 << 40}).Draw(t, "ttl"),
	}
}

// createOp draws an op code, mostly one that suits the mode.
func createOp(t *rapid.T, mode proto.CreateMode) proto.OpCode {
	switch {
	case rapid.IntRange(0, 5).Draw(t, "any") == 0:
		return rapid.SampledFrom([]proto.OpCode{proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL}).Draw(t, "op")
	case mode.TTL():
		return proto.OpCreateTTL
	case mode == proto.ModeContainer:
		return proto.OpCreateContainer
	}
	return rapid.SampledFrom([]proto.OpCode{proto.OpCreate, proto.OpCreate2}).Draw(t, "op")
}

// setDataRequest does not write the stats of quotas: nothing is promised for such a write.
func (s *machine) setDataRequest(t *rapid.T) *proto.SetDataRequest {
	path := s.path(t)
	if strings.HasSuffix(path, "/zookeeper_stats") {
		path = "/q"
	}
	return &proto.SetDataRequest{Path: path, Data: s.dataFor(t, path), Version: s.version(t, path, func(n *modelNode) int32 { return n.version })}
}

func (s *machine) pathVersion(t *rapid.T) *proto.PathVersionRequest {
	path := s.path(t)
	return &proto.PathVersionRequest{Path: path, Version: s.version(t, path, func(n *modelNode) int32 { return n.version })}
}

func (s *machine) multiOps(t *rapid.T) []proto.MultiOp {
	ops := make([]proto.MultiOp, rapid.IntRange(0, 5).Draw(t, "ops"))
	var fresh []string // perhaps created by earlier operations of this multi
	for i := range ops {
		switch rapid.IntRange(0, 5).Draw(t, "sub") {
		case 0:
			v := s.pathVersion(t)
			ops[i] = proto.MultiOp{Op: proto.OpDelete, Path: v.Path, Version: v.Version}
		case 1:
			v := s.pathVersion(t)
			ops[i] = proto.MultiOp{Op: proto.OpCheck, Path: v.Path, Version: v.Version}
		case 2:
			r := s.setDataRequest(t)
			ops[i] = proto.MultiOp{Op: proto.OpSetData, Path: r.Path, Data: r.Data, Version: r.Version}
		default:
			c := s.createRequest(t)
			op := createOp(t, c.Mode)
			if op == proto.OpCreateContainer || c.Mode == proto.ModeContainer && op == proto.OpCreateTTL {
				// In a multi, the result of createContainer with other flags, or of createTTL with
				// those of a container, is not specified, and no client sends them.
				op, c.Mode = proto.OpCreateContainer, proto.ModeContainer
			}
			if op != proto.OpCreateTTL {
				c.TTL = 0
			}
			ops[i] = proto.MultiOp{Op: op, Path: c.Path, Data: c.Data, ACL: c.ACL, Mode: c.Mode, TTL: c.TTL}
			fresh = append(fresh, c.Path)
		}
		if o := &ops[i]; len(fresh) > 0 && rapid.IntRange(0, 3).Draw(t, "fresh") == 0 {
			path := rapid.SampledFrom(fresh).Draw(t, "path")
			switch {
			case o.Op == proto.OpDelete, o.Op == proto.OpCheck, o.Op == proto.OpSetData && !strings.HasSuffix(path, "/zookeeper_stats"):
				o.Path = path
			case o.Op != proto.OpSetData:
				o.Path = path + "/" + names.Draw(t, "name")
			}
		}
	}
	return ops
}
