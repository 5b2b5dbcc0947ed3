package main

import (
	"context"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/test/compat/server"
)

const (
	long  = 30 * time.Second
	short = time.Second
)

var open = proto.OpenACL()

// play plays the script: each kind of request that a server may put into its audit log, with each
// way to fail.
func play(addr string) {
	c := connect(addr, long)
	creates(c)
	changes(c)
	acls(c)
	multis(c)
	malformed(c)
	users(addr)
	sessions(addr, c)
	c.close()
	must.Get(server.FourLetterWord(context.Background(), addr, "srst"))
}

func creates(c *client) {
	for _, mode := range []proto.CreateMode{
		proto.ModePersistent, proto.ModeEphemeral, proto.ModePersistentSequential, proto.ModeEphemeralSequential,
	} {
		c.do(proto.OpCreate, create(proto.OpCreate, text("/create-%d", mode), mode, 0, open))
		c.do(proto.OpCreate2, create(proto.OpCreate2, text("/create2-%d", mode), mode, 0, open))
	}
	c.do(proto.OpCreateContainer, create(proto.OpCreateContainer, "/container", proto.ModeContainer, 0, open))
	c.do(proto.OpCreateContainer, create(proto.OpCreateContainer, "/container", proto.ModeContainer, 0, open))
	c.do(proto.OpCreateTTL, create(proto.OpCreateTTL, "/ttl", proto.ModePersistentTTL, 3_600_000, open))
	c.do(proto.OpCreateTTL, create(proto.OpCreateTTL, "/ttl-seq", proto.ModePersistentSequentialTTL, 3_600_000, open))
	c.do(proto.OpCreateTTL, create(proto.OpCreateTTL, "/ttl-0", proto.ModePersistentTTL, 0, open))
	c.do(proto.OpCreateTTL, create(proto.OpCreateTTL, "/ttl", proto.ModePersistentTTL, 3_600_000, open))
	for _, path := range []string{
		"/create-0", "/none/child", "/create-1/child", "relative", "/end/", "/a//b", "/a/../b", "", "/", "/nul\x00", "/zookeeper/x",
		"/ünïcode", "/emoji😀", "/equal=sign", "/space x", "/quote\"'", "/back\\slash", "/del\x7f", "/u\u0085", "/high\uf8ff",
	} {
		c.do(proto.OpCreate, create(proto.OpCreate, path, proto.ModePersistent, 0, open))
	}
	c.do(proto.OpCreate, create(proto.OpCreate, "/sequence-", proto.ModePersistentSequential, 0, nil))
	c.do(proto.OpCreate, create(proto.OpCreate, "/null-acl", proto.ModePersistent, 0, nil))
	c.do(proto.OpCreate, create(proto.OpCreate, "/empty-acl", proto.ModePersistent, 0, []proto.ACL{}))
	c.do(proto.OpCreate, create(proto.OpCreate, "/bad-acl", proto.ModePersistent, 0, []proto.ACL{acl(31, "nobody", "x")}))
	for _, mode := range []proto.CreateMode{proto.ModeContainer, proto.ModePersistentTTL, proto.ModePersistentSequentialTTL} {
		c.do(proto.OpCreate, create(proto.OpCreate, text("/mode%d", mode), mode, 0, open))
		c.do(proto.OpCreate2, create(proto.OpCreate2, text("/mode2%d", mode), mode, 0, open))
		c.do(proto.OpCreateContainer, create(proto.OpCreateContainer, text("/container%d", mode), mode, 0, open))
		c.do(proto.OpCreateTTL, create(proto.OpCreateTTL, text("/ttl%d", mode), mode, 1000_000, open))
	}
	c.do(proto.OpCreateContainer, create(proto.OpCreateContainer, "/container0", proto.ModePersistent, 0, open))
	c.do(proto.OpCreateTTL, create(proto.OpCreateTTL, "/ttl0", proto.ModePersistent, 1000_000, open))
}

func changes(c *client) {
	c.do(proto.OpCreate, create(proto.OpCreate, "/d", proto.ModePersistent, 0, open))
	c.do(proto.OpCreate, create(proto.OpCreate, "/d/child", proto.ModePersistent, 0, open))
	for _, r := range []struct {
		path    string
		version int32
	}{{"/d", 0}, {"/d", -1}, {"/d", 7}, {"/none", -1}, {"relative", -1}, {"/d/", -1}, {"/nul\x00", -1}, {"", -1}} {
		if strings.HasPrefix(r.path, "/d") || r.path == "/none" { // otherwise ZooKeeper closes the connection
			c.do(proto.OpSetData, setData(r.path, r.version))
		}
		c.do(proto.OpDelete, remove(r.path, r.version))
		c.do(proto.OpSetACL, setACL(r.path, r.version, open...))
	}
	c.do(proto.OpDelete, remove("/d/child", 0))
	c.do(proto.OpDelete, remove("/d", -1))
	c.do(proto.OpDelete, remove("/", -1))
	c.do(proto.OpDelete, remove("/zookeeper", -1))
	c.do(proto.OpSetData, setData("/", -1))
	c.do(proto.OpSetData, setData("/zookeeper/config", -1))
	c.do(proto.OpSync, (&proto.PathRequest{}).Append(nil))
	c.do(proto.OpGetData, (&proto.PathWatchRequest{Path: "/"}).Append(nil))
	c.do(proto.OpReconfig, (&proto.ReconfigRequest{}).Append(nil))
}

func acls(c *client) {
	c.do(proto.OpCreate, create(proto.OpCreate, "/acl", proto.ModePersistent, 0, open))
	for _, list := range [][]proto.ACL{
		{}, open, {acl(0, "world", "anyone")}, {acl(32, "world", "anyone")}, {acl(-1, "world", "anyone")},
		{acl(31, "world", "nobody")}, {acl(31, "nobody", "x")}, {acl(31, "auth", "")}, {acl(31, "digest", "no-colon")},
		{acl(1, "ip", "127.0.0.1"), acl(2, "ip", "10.0.0.0/8"), acl(31, "world", "anyone"), acl(31, "world", "anyone")},
		{acl(1, "digest", "üser:hash"), acl(31, "world", "anyone")},
		{acl(5, "digest", "bob:0jwa+3XvYb5TFSYR3JIdvgqL1a8="), acl(26, "world", "anyone")},
	} {
		c.do(proto.OpSetACL, setACL("/acl", -1, list...))
	}
	c.do(proto.OpSetACL, setACL("/acl", 100, open...))
	c.do(proto.OpSetACL, setACL("/", 100, open...))
}

func multis(c *client) {
	op := func(op proto.OpCode, path string, mode proto.CreateMode) proto.MultiOp {
		return proto.MultiOp{Op: op, Path: path, Mode: mode, ACL: open, Version: -1, TTL: 3_600_000}
	}
	good := []proto.MultiOp{
		op(proto.OpCreate, "/m", 0), op(proto.OpCreate2, "/m/2", 0), op(proto.OpCreate, "/m/e", proto.ModeEphemeral),
		op(proto.OpCreate, "/m/s", proto.ModePersistentSequential), op(proto.OpCreateContainer, "/m/c", proto.ModeContainer),
		op(proto.OpCreateTTL, "/m/t", proto.ModePersistentTTL), op(proto.OpCheck, "/m", 0), op(proto.OpSetData, "/m", 0),
		op(proto.OpDelete, "/m/2", 0),
	}
	c.do(proto.OpMulti, multi(good...))
	c.do(proto.OpMulti, multi())
	c.do(proto.OpMulti, multi(op(proto.OpCheck, "/m", 0)))
	c.do(proto.OpMulti, multi(op(proto.OpCheck, "/none", 0)))
	for at := range 3 {
		ops := []proto.MultiOp{op(proto.OpCreate, "/m/1", 0), op(proto.OpSetData, "/m", 0), op(proto.OpDelete, "/m/1", 0)}
		ops[at] = op(proto.OpDelete, "/none", 0)
		c.do(proto.OpMulti, multi(ops...))
	}
	bad := op(proto.OpCreate, "/m/bad", 0)
	bad.ACL = nil
	c.do(proto.OpMulti, multi(bad))
	c.do(proto.OpMulti, multi(op(proto.OpCreate, "relative", 0)))
	c.do(proto.OpMulti, multi(op(proto.OpCreate, "/m/mode", 9)))
	c.do(proto.OpMulti, multi(op(proto.OpSetData, "/m", 0), op(proto.OpCreate, "/m/mode", 9)))
	c.do(proto.OpMultiRead, multi(op(proto.OpGetData, "/m", 0)))
}

// malformed sends bodies that are too short.
func malformed(c *client) {
	for _, op := range []proto.OpCode{
		proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL, proto.OpDelete, proto.OpSetData, proto.OpMulti,
	} {
		c.do(op, []byte{0, 0})
	}
	c.do(proto.OpMulti, proto.AppendMultiHeader(nil, proto.OpGetData, false, -1))
	c.do(proto.OpCreate, create(proto.OpCreate, "/malformed", 0, 0, open)[:15])
	c.do(proto.OpSetData, setData("/d", -1)[:8])
	c.do(proto.OpSetACL, setACL("/d", -1, open...)[:12])
	c.do(proto.OpDelete, remove("/d", -1)[:6])
}

func users(addr string) {
	bob, alice, super := connect(addr, long), connect(addr, long), connect(addr, long)
	bob.identify("digest", "bob:secret")
	alice.identify("digest", "alice:secret")
	super.identify("digest", "super:"+server.SuperPassword)
	private := []proto.ACL{acl(31, "auth", "")}
	bob.do(proto.OpCreate, create(proto.OpCreate, "/bob", 0, 0, private))
	bob.do(proto.OpSetACL, setACL("/bob", -1, private...))
	alice.do(proto.OpGetData, (&proto.PathWatchRequest{Path: "/bob"}).Append(nil))
	alice.do(proto.OpCreate, create(proto.OpCreate, "/bob/x", 0, 0, open))
	alice.do(proto.OpSetData, setData("/bob", -1))
	alice.do(proto.OpSetACL, setACL("/bob", -1, open...))
	alice.do(proto.OpMulti, multi(proto.MultiOp{Op: proto.OpSetData, Path: "/bob", Version: -1}))
	super.do(proto.OpSetData, setData("/bob", -1))
	super.do(proto.OpReconfig, (&proto.ReconfigRequest{}).Append(nil))
	bob.identify("digest", "bob:other")
	bob.identify("digest", "carol:pw")
	bob.identify("digest", "carol:pw")
	bob.identify("digest", "no-colon")
	for i := range 12 {
		bob.identify("digest", text("user%d:pw", i))
		bob.do(proto.OpSetData, setData("/bob", -1))
	}
	bob.identify("ip", "")
	bob.do(proto.OpSetData, setData("/bob", -1))
	bob.do(proto.OpCreate, create(proto.OpCreate, "/bob/x", proto.ModeEphemeral, 0, private))
	odd := connect(addr, long)
	for i := range 10 {
		odd.identify("digest", text(":pw%d", i))
		odd.do(proto.OpCreate, create(proto.OpCreate, text("/odd%d", i), 0, 0, open))
	}
	odd.identify("digest", "a,b:c")
	odd.identify("digest", " :c")
	odd.identify("digest", "ünï:c")
	odd.identify("digest", "")
	odd.do(proto.OpCreate, create(proto.OpCreate, "/odd", 0, 0, open))
	odd.identify("nobody", "x")
	_ = odd.conn.Close()
	bob.close()
	alice.close()
	super.close()
}

func sessions(addr string, c *client) {
	e := connect(addr, long)
	e.identify("digest", "erin:pw")
	e.do(proto.OpCreate, create(proto.OpCreate, "/e1", proto.ModeEphemeral, 0, open))
	e.do(proto.OpCreate, create(proto.OpCreate, "/e2", proto.ModeEphemeral, 0, open))
	e.do(proto.OpCreate, create(proto.OpCreate, "/e3-", proto.ModeEphemeralSequential, 0, open))
	e.close()
	c.awaitGone("/e1")
	x := connect(addr, short)
	x.do(proto.OpCreate, create(proto.OpCreate, "/x", proto.ModeEphemeral, 0, open))
	c.awaitGone("/x")
	_ = x.conn.Close()
	c.do(proto.OpCreateContainer, create(proto.OpCreateContainer, "/collected", proto.ModeContainer, 0, open))
	c.do(proto.OpCreate, create(proto.OpCreate, "/collected/x", 0, 0, open))
	c.do(proto.OpDelete, remove("/collected/x", -1))
	c.awaitGone("/collected")
	c.do(proto.OpCreateTTL, create(proto.OpCreateTTL, "/timed", proto.ModePersistentTTL, 100, open))
	c.awaitGone("/timed")
	c.do(proto.OpCreate, create(proto.OpCreate, "/quota", 0, 0, open))
	c.do(proto.OpCreate, create(proto.OpCreate, "/zookeeper/quota/quota", 0, 0, open))
	c.do(proto.OpCreate, (&proto.CreateRequest{Path: "/zookeeper/quota/quota/zookeeper_limits", ACL: open,
		Data: []byte("count=1,bytes=-1=;byteHardLimit=-1;countHardLimit=1")}).Append(nil, proto.OpCreate))
	for i := range 3 {
		c.do(proto.OpCreate, create(proto.OpCreate, text("/quota/%d", i), 0, 0, open))
		c.do(proto.OpMulti, multi(proto.MultiOp{Op: proto.OpCreate, Path: text("/quota/m%d", i), ACL: open}))
	}
	c.do(999, nil)
}
