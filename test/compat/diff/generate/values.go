package generate

import (
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/gozkd/gozkd/test/compat/diff/exchange"
)

const root = exchange.RootTemplate

// path returns a path: usually out of a few under the root, sometimes odd or the system's.
func (g *gen) path() *string {
	switch {
	case g.chance(25):
		return g.oddPath()
	case g.chance(20):
		return text(one(g, "/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"))
	case g.chance(15):
		return text("/zookeeper/quota" + g.plainPath())
	}
	p := g.plainPath()
	if g.recent = append(g.recent, p); len(g.recent) > 6 {
		g.recent = g.recent[1:]
	}
	return &p
}

// plainPath returns a path under the root, seldom deep, of recurring names.
func (g *gen) plainPath() string {
	if len(g.names) > 0 && g.chance(60) {
		return one(g, g.names...)
	}
	if len(g.recent) > 0 && g.chance(500) {
		return one(g, g.recent...)
	}
	path := root
	for g.chance(850) {
		path += "/" + one(g, "a", "a", "b", "b", "c")
		if g.chance(550) {
			break
		}
	}
	return path
}

// oddPath returns a path that some rule of PathUtils.validatePath concerns.
func (g *gen) oddPath() *string {
	p := g.plainPath()
	return one(g, nil, text(""), text("a"), text("a/b"), text("//"), text(p+"/"), text(p+"//x"), text("/"+p),
		text(p+"/."), text(p+"/.."), text(p+"/..."), text(p+"/.x"), text(p+"/x\x00y"), text(p+"/x\x01"), text(p+"/x\x1f"),
		text(p+"/x\x7f"), text(p+"/\u0080"), text(p+"/\u009f"), text(p+"/\u00a0"), text(p+"/\ue000"), text(p+"/\uf8ff"),
		text(p+"/\uf900"), text(p+"/\uffef"), text(p+"/\ufff0"), text(p+"/\ufffd"), text(p+"/\U0001f600"), text(p+"/\xff\xfe"),
		text(p+"/\xed\xa0\x80"), text(p+"/ü"), text(p+"/ "), text(p+"/"+strings.Repeat("n", 300)), text(p+"/%d"), text(p+"/a/./b"),
		text(p+"/a/../b"), text("/."), text("/.."), text(" "), text(p+"\n"))
}

func (g *gen) data() []byte {
	switch {
	case g.chance(100):
		return nil
	case g.chance(100):
		return []byte{}
	case g.chance(20):
		return g.bytes(2000)
	}
	return g.bytes(g.IntN(30))
}

func (g *gen) version() int32 {
	if g.chance(500) {
		return -1
	}
	return one[int32](g, 0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 4, 5, -2, -3, 1<<31-1, -1<<31)
}

// digest returns the id of user:password.
func digest(userPassword string) string {
	sum := sha1.Sum([]byte(userPassword))
	user, _, _ := strings.Cut(userPassword, ":")
	return user + ":" + base64.StdEncoding.EncodeToString(sum[:])
}

var openACL = []acl{{31, text("world"), text("anyone")}}

// acls returns a list of entries: usually the open one, otherwise anything for which
// PrepRequestProcessor.fixupACL has a rule.
func (g *gen) acls() []acl {
	switch {
	case g.chance(700):
		return openACL
	case g.chance(30):
		if g.inMulti && g.members > 1 {
			return openACL // it would stop a ZooKeeper ensemble, see malformed-write
		}
		return nil
	case g.chance(30):
		return []acl{}
	}
	list := make([]acl, 0, 3)
	for range 1 + g.IntN(3) {
		list = append(list, g.acl())
		if g.chance(100) {
			list = append(list, list[0]) // a duplicate
		}
	}
	// A null scheme or id stands alone: ZooKeeper compares the entries of a list, and whether it
	// fails on null depends on the others. The difference would spoil the rest of the sequence.
	for _, a := range list {
		if a.scheme == nil || a.id == nil {
			if g.inMulti { // it would affect the requests pipelined after it, see null-acl-id-in-multi
				return openACL
			}
			return []acl{a}
		}
	}
	return list
}

func (g *gen) acl() acl {
	perms := one[int32](g, 31, 31, 31, 1, 2, 4, 8, 16, 3, 5, 17, 30, 0, 32, -1, int32(g.IntN(32)))
	of := func(scheme, id string) acl { return acl{perms, text(scheme), text(id)} }
	switch {
	case g.chance(300):
		return of("world", "anyone")
	case g.chance(300):
		return of("digest", digest(one(g, users...)))
	case g.chance(200):
		return of("auth", one(g, "", "anything"))
	case g.chance(300):
		return of("ip", one(g, "127.0.0.1", "127.0.0.0/8", "127.0.0.1/32", "10.0.0.0/8", "0.0.0.0/0", "127.0.0.1/0", "10.1.2.3"))
	case g.chance(100):
		return acl{perms, one(g, text("world"), text("digest"), text("ip"), text("auth"), nil), nil}
	case g.chance(50):
		return acl{perms, nil, text("anyone")}
	}
	return one(g, of("world", "somebody"), of("world", ""), of("digest", "a"), of("digest", "a:"), of("digest", ":b"), of("digest", "a:b:"),
		of("digest", "a:b:c"), of("digest", "a::b"), of("digest", ""), of("digest", "x:y"), of("digest", "x:\U0001f600"), of("digest", ":"), of("ip", ""), of("ip", "127.0.0"),
		of("ip", "127.0.0.1/33"), of("ip", "127.0.0.1/-1"), of("ip", "256.0.0.1"), of("ip", "127.0.0.1/x"), of("ip", "localhost"), of("ip", "::1"),
		of("ip", "::1/64"), of("ip", "::1/129"), of("ip", "fe80::/10"), of("ip", "1.2.3.4.5"), of("ip", "127.0.0.1/8/8"), of("super", ""), of("super", "x"), of("nosuch", "x"), of("", ""),
		of("sasl", "x"), of("WORLD", "anyone"))
}

// users are the identities of a sequence's connections. super is the superuser of the servers under
// test.
var users = []string{"alice:secret", "bob:secret", "super:admin"}

func (g *gen) goodAuth() []byte {
	switch {
	case g.chance(100):
		return auth(text("ip"), one(g, nil, []byte{}, []byte("10.0.0.1")))
	case g.chance(50):
		return auth(text("digest"), one(g, []byte{}, []byte("nocolon"), []byte(":"), []byte("a:b:c"), []byte("super:wrong"), []byte("\xff:\xfe")))
	case g.chance(150):
		return auth(text("digest"), []byte("super:admin"))
	}
	return auth(text("digest"), []byte(one(g, users[:2]...)))
}

func (g *gen) badAuth() []byte {
	return one(g, auth(text("world"), []byte("anyone")), auth(text("auth"), nil), auth(text("nosuch"), []byte("x")),
		auth(text(""), nil), auth(text("digest"), nil), auth(text("super"), []byte("super:admin")))
}

// quotaText returns the content of a limits znode.
func (g *gen) quotaText() []byte {
	return []byte(one(g,
		fmt.Sprintf("count=%d,bytes=%d", g.IntN(6)-1, g.IntN(60)-1),
		fmt.Sprintf("count=-1,bytes=-1=;byteHardLimit=%d;countHardLimit=%d", g.IntN(60)-1, g.IntN(6)-1),
		fmt.Sprintf("count=%d,bytes=%d;byteHardLimit=%d;countHardLimit=%d", g.IntN(6)-1, g.IntN(60)-1, g.IntN(60)-1, g.IntN(6)-1),
		"count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=3", "count=-1,bytes=-1=;byteHardLimit=30;countHardLimit=-1", "count=1", "bytes=5", "nonsense", "", "count=x,bytes=y", "count=4,bytes=20;byteHardLimit=20;countHardLimit=4"))
}
