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
func (g *gen) path() string {
	switch {
	case g.chance(25):
		return g.oddPath()
	case g.chance(20):
		return q(one(g, "/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"))
	case g.chance(15):
		return q("/zookeeper/quota" + g.plainPath())
	}
	p := g.plainPath()
	if g.recent = append(g.recent, p); len(g.recent) > 6 {
		g.recent = g.recent[1:]
	}
	return q(p)
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
func (g *gen) oddPath() string {
	p := g.plainPath()
	return one(g, null, q(""), q("a"), q("a/b"), q("//"), q(p+"/"), q(p+"//x"), q("/"+p),
		q(p+"/."), q(p+"/.."), q(p+"/..."), q(p+"/.x"), q(p+"/x\x00y"), q(p+"/x\x01"), q(p+"/x\x1f"),
		q(p+"/x\x7f"), q(p+"/\u0080"), q(p+"/\u009f"), q(p+"/\u00a0"), q(p+"/\ue000"), q(p+"/\uf8ff"),
		q(p+"/\uf900"), q(p+"/\uffef"), q(p+"/\ufff0"), q(p+"/\ufffd"), q(p+"/\U0001f600"), q(p+"/\xff\xfe"),
		q(p+"/\xed\xa0\x80"), q(p+"/ü"), q(p+"/ "), q(p+"/"+strings.Repeat("n", 300)), q(p+"/%d"), q(p+"/a/./b"),
		q(p+"/a/../b"), q("/."), q("/.."), q(" "), q(p+"\n"))
}

func (g *gen) data() string {
	switch {
	case g.chance(100):
		return null
	case g.chance(100):
		return q("")
	case g.chance(20):
		return q(g.bytes(2000))
	}
	return q(g.bytes(g.IntN(30)))
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

const openACL = "open"

// acls returns a list of entries: usually the open one, otherwise anything for which
// PrepRequestProcessor.fixupACL has a rule.
func (g *gen) acls() string {
	switch {
	case g.chance(700):
		return openACL
	case g.chance(30):
		if g.inMulti && g.members > 1 {
			return openACL // it would stop a ZooKeeper ensemble, see malformed-write
		}
		return null
	case g.chance(30):
		return "[]"
	}
	var list []string
	for range 1 + g.IntN(3) {
		list = append(list, g.acl())
		if g.chance(100) {
			list = append(list, list[0]) // a duplicate
		}
	}
	// A null scheme or id stands alone: ZooKeeper compares the entries of a list, and whether it
	// fails on null depends on the others. The difference would spoil the rest of the sequence.
	for _, a := range list {
		if strings.Contains(a, null) {
			if g.inMulti { // it would affect the requests pipelined after it, see null-acl-id-in-multi
				return openACL
			}
			return "[" + a + "]"
		}
	}
	return fmt.Sprint(list)
}

// acl returns an entry of an ACL.
func (g *gen) acl() string {
	perms := one[int32](g, 31, 31, 31, 1, 2, 4, 8, 16, 3, 5, 17, 30, 0, 32, -1, int32(g.IntN(32)))
	of := func(scheme, id string) string { return fmt.Sprintf("%d %q %q", perms, scheme, id) }
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
		return fmt.Sprintf("%d %s null", perms, one(g, q("world"), q("digest"), q("ip"), q("auth"), null))
	case g.chance(50):
		return fmt.Sprintf("%d null %q", perms, "anyone")
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
		return body(`auth 0 "ip" %s`, one(g, null, q(""), q("10.0.0.1")))
	case g.chance(50):
		return body(`auth 0 "digest" %q`, one(g, "", "nocolon", ":", "a:b:c", "super:wrong", "\xff:\xfe"))
	case g.chance(150):
		return body(`auth 0 "digest" "super:admin"`)
	}
	return body(`auth 0 "digest" %q`, one(g, users[:2]...))
}

func (g *gen) badAuth() []byte {
	return body("auth 0 %s", one(g, `"world" "anyone"`, `"auth" null`, `"nosuch" "x"`, `"" null`, `"digest" null`, `"super" "super:admin"`))
}

// quotaText returns the content of a limits znode.
func (g *gen) quotaText() string {
	return q(one(g,
		fmt.Sprintf("count=%d,bytes=%d", g.IntN(6)-1, g.IntN(60)-1),
		fmt.Sprintf("count=-1,bytes=-1=;byteHardLimit=%d;countHardLimit=%d", g.IntN(60)-1, g.IntN(6)-1),
		fmt.Sprintf("count=%d,bytes=%d;byteHardLimit=%d;countHardLimit=%d", g.IntN(6)-1, g.IntN(60)-1, g.IntN(60)-1, g.IntN(6)-1),
		"count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=3", "count=-1,bytes=-1=;byteHardLimit=30;countHardLimit=-1", "count=1", "bytes=5", "nonsense", "", "count=x,bytes=y", "count=4,bytes=20;byteHardLimit=20;countHardLimit=4"))
}
