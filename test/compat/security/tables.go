package main

import (
	"fmt"
	"strings"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

const (
	provider     = "org.apache.zookeeper.server.auth."
	saslKeys     = "java.security.auth.login.config=JAAS\nauthProvider.1=" + provider + "SASLAuthenticationProvider\n"
	tokenOfBob   = `charset=utf-8,username="bob",realm="zk-sasl-md5",nonce="x",nc=00000001,cnonce="y",digest-uri="zookeeper/zk-sasl-md5",response=00000000000000000000000000000000,qop=auth`
	enforcedSASL = saslKeys + "enforce.auth.enabled=true\nenforce.auth.schemes=sasl\n"
)

// one returns a row of a single connection.
func one(name string, do func(c *conn)) row {
	return row{name, func(p *player) string {
		c := p.connect(nil)
		do(c)
		return c.story()
	}}
}

// changed returns a row in which bob logs in with a token that change has changed, and asks who he
// is.
func changed(name string, change func(token string) string) row {
	return one(name, func(c *conn) {
		c.login("bob", "bob-secret", change)
		c.whoAmI()
	})
}

// replaced replaces a directive, or leaves it out.
func replaced(name, value string) row {
	return changed(name+"="+value, func(token string) string {
		var kept []string
		for part := range strings.SplitSeq(token, ",") {
			if !strings.HasPrefix(part, name+"=") {
				kept = append(kept, part)
			}
		}
		if value != "" {
			kept = append(kept, name+"="+value)
		}
		return strings.Join(kept, ",")
	})
}

func user(name, password string) row {
	return one("login of "+name+" with "+password, func(c *conn) {
		c.login(name, password, nil)
		c.whoAmI()
	})
}

var digestRows = []row{
	user("bob", "bob-secret"), user("eve", "eve-secret"), user("super", "super-secret"), user("jürgen", "jürgen-secret"),
	user("bob", "wrong"), user("mallory", "wrong"), user("X", "X-secret"),
	changed("unchanged", func(s string) string { return s }),
	changed("empty", func(string) string { return "" }),
	changed("garbage", func(string) string { return "garbage" }),
	changed("spaces", func(s string) string { return strings.ReplaceAll(s, ",", " , ") }),
	changed("commas", func(s string) string { return "," + strings.ReplaceAll(s, ",", ",,") + "," }),
	changed("repeated", func(s string) string { return s + `,username="bob"` }),
	changed("unknown directive", func(s string) string { return s + `,foo="a,b"` }),
	changed("escapes", func(s string) string { return strings.Replace(s, `"bob"`, `"b\ob"`, 1) }),
	changed("unquoted name", func(s string) string { return strings.Replace(s, `"bob"`, `bob`, 1) }),
	changed("authzid", func(s string) string { return s + `,authzid="super"` }), // not in the response, so it is wrong
	replaced("realm", `"other"`), replaced("realm", `""`), replaced("realm", ""),
	replaced("nonce", `"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"`), replaced("nonce", ""),
	replaced("nc", "00000002"), replaced("nc", "1"), replaced("nc", ""), replaced("cnonce", ""), replaced("cnonce", `""`),
	replaced("digest-uri", `"imap/zk-sasl-md5"`), replaced("digest-uri", `"zookeeper/localhost"`), replaced("digest-uri", ""), replaced("digest-uri", `"ZOOKEEPER/zk-sasl-md5"`),
	replaced("qop", "auth-int"), replaced("qop", "auth-conf"), replaced("qop", ""), replaced("maxbuf", ""), replaced("charset", ""), replaced("charset", "utf-16"),
	replaced("response", ""), replaced("response", "00"), replaced("username", ""), replaced("username", `""`),
	one("null token", func(c *conn) { c.sasl(1, nil) }),
	one("any first token", func(c *conn) { c.sasl(0, []byte("abc")) }),
	one("second exchange", func(c *conn) {
		c.login("bob", "bob-secret", nil)
		c.sasl(3, []byte{})
		c.whoAmI()
	}),
	one("a request after the failure", func(c *conn) {
		c.sasl(1, []byte{})
		c.sasl(2, []byte(tokenOfBob))
		c.whoAmI()
	}),
	{"the session outlives the failure", func(p *player) string {
		c := p.connect(nil)
		c.login("bob", "wrong", nil)
		again := p.connect(c)
		again.login("bob", "bob-secret", nil)
		again.whoAmI()
		return fmt.Sprint(again.session == c.session, " ", again.story())
	}},
}

// aclRows create znodes with ids of a scheme.
func aclRows(scheme string, ids ...string) (rows []row) {
	for i, id := range ids {
		rows = append(rows, one("ACL "+scheme+":"+fmt.Sprintf("%q", id), func(c *conn) {
			c.create(fmt.Sprintf("/%s%d", scheme, i), proto.ID{Scheme: scheme, ID: id})
		}))
	}
	return rows
}

var saslIDs = []string{"bob", "a/b/c", "", "a b", "@R", "a/", "ü", "a@b@c", "a/b@R", "a/b/c@R", "a@b/c", "a\nb@R"}

var x509IDs = []string{
	"CN=alice", "garbage", "", "cn=a,ou=b", "CN=a;O=b", "CN=m+UID=u", "1.2.3=x", "OID.2.5.4.3=x", `O=Ex\, Inc`, `O="a, b"`, "CN=", "CN=#0c0161", "CN=#0c",
	"TITLE=Dr", "T=Dr", "CN=a,", ",CN=a", "CN=a<b", `CN=\x`, "3.1=x", "CN=ü", "EMAILADDRESS=a@b", "=x",
}

// matchRows are clients at znodes with ACLs of scheme sasl.
var matchRows = []row{
	{"who reads what", func(p *player) string {
		owner := p.connect(nil)
		id := func(id string) proto.ID { return proto.ID{Scheme: "sasl", ID: id} }
		owner.create("/of-bob", id("bob"))
		owner.create("/of-X", id("X"))
		owner.create("/of-super", proto.ID{Scheme: "digest", ID: "nobody:hash"})
		var all []string
		for _, name := range []string{"", "bob", "eve", "super", "jürgen"} {
			c := p.connect(nil)
			if name != "" {
				c.login(name, name+"-secret", nil)
			}
			for _, path := range []string{"/of-bob", "/of-X", "/of-super"} {
				c.get(path)
				c.set(path)
			}
			if name != "" {
				c.create("/own-"+name, proto.ID{Scheme: "auth"})
				frame := c.call(9, proto.OpGetACL, (&proto.PathWatchRequest{Path: "/own-" + name}).Append(nil))
				if frame != nil {
					d := jute.NewDecoder(frame[proto.ReplyHeaderBytes:])
					var r proto.ACLResponse
					r.Decode(&d)
					c.said = append(c.said, fmt.Sprint(r.ACL))
				}
			}
			all = append(all, name+": "+c.story())
		}
		return owner.story() + "\n             " + strings.Join(all, "\n             ")
	}},
}

var first = map[string]func(c *conn){
	"ping":         func(c *conn) { c.call(proto.XidPing, proto.OpPing, nil) },
	"closeSession": func(c *conn) { c.call(7, proto.OpCloseSession, nil) },
	"get":          func(c *conn) { c.get("/") },
	"create":       func(c *conn) { c.create("/a") },
	"whoAmI":       func(c *conn) { c.whoAmI() },
	"setWatches": func(c *conn) {
		c.call(proto.XidSetWatches, proto.OpSetWatches, jute.AppendLong(make([]byte, 0), 0))
	},
}

// enforcementRows are first requests of clients with and without identities.
func enforcementRows() (rows []row) {
	for _, name := range []string{"ping", "closeSession", "get", "create", "whoAmI", "setWatches"} {
		rows = append(rows,
			one("first request "+name, func(c *conn) { first[name](c); c.reply(proto.OpPing) }),
			one("digest, then "+name, func(c *conn) { c.auth("digest", "u:p"); first[name](c); c.reply(proto.OpPing) }),
			one("ip, then "+name, func(c *conn) { c.auth("ip", ""); first[name](c); c.reply(proto.OpPing) }))
	}
	return append(rows,
		user("bob", "bob-secret"), user("bob", "wrong"),
		one("digest and sasl", func(c *conn) { c.auth("digest", "u:p"); c.login("bob", "bob-secret", nil); c.whoAmI() }),
		one("half an exchange", func(c *conn) { c.sasl(1, []byte{}); c.whoAmI(); c.reply(proto.OpPing) }),
		one("unknown scheme", func(c *conn) { c.auth("unheard-of", "x"); c.reply(proto.OpPing) }),
		row{"the session outlives the refusal", func(p *player) string {
			c := p.connect(nil)
			c.get("/")
			again := p.connect(c)
			again.login("bob", "bob-secret", nil)
			again.get("/")
			return fmt.Sprint(again.session == c.session, " ", again.story())
		}})
}

var ttlRow = one("createTTL", func(c *conn) {
	for _, ttl := range []int64{1000, -1} {
		create := proto.CreateRequest{Path: "/ttl", ACL: proto.OpenACL(), Mode: proto.ModePersistentTTL, TTL: ttl}
		c.call(6, proto.OpCreateTTL, create.Append(nil, proto.OpCreateTTL))
		create.NullPath = false
		multi := proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpCreateTTL, Path: "/ttl2", ACL: proto.OpenACL(), Mode: proto.ModePersistentTTL, TTL: ttl}}}
		if frame := c.call(7, proto.OpMulti, multi.Append(nil)); frame != nil {
			c.said = append(c.said, fmt.Sprintf("%d bytes", len(frame)))
		}
	}
	container := proto.CreateRequest{Path: "/container", ACL: proto.OpenACL(), Mode: proto.ModeContainer}
	c.call(8, proto.OpCreateContainer, container.Append(nil, proto.OpCreateContainer))
})

func ensembleRow(name string) row {
	return one("ensemble "+name, func(c *conn) { c.auth("ensemble", name); c.whoAmI() })
}

var tables = []table{
	{"digest", saslKeys + "superUser=eve\nsuperUser.more=nobody\n", digestRows},
	{"acl", saslKeys + "superUser=eve\nletAnySaslUserDoX=X\n", append(append(matchRows, aclRows("sasl", saslIDs...)...), aclRows("x509", "CN=alice")...)},
	{"super password", saslKeys + "SASLAuthenticationProvider.superPassword=other\n", []row{user("super", "super-secret"), user("super", "other"), user("bob", "bob-secret")}},
	{"no provider", "java.security.auth.login.config=JAAS\n", append([]row{user("bob", "bob-secret")}, aclRows("sasl", "bob")...)},
	{"no sasl", "maxClientCnxns=0\n", append([]row{
		one("tokens", func(c *conn) { c.sasl(1, []byte{}); c.sasl(2, []byte("abc")); c.whoAmI() }),
		one("null token", func(c *conn) { c.sasl(1, nil) }),
		one("x509 auth", func(c *conn) { c.auth("x509", "CN=a") }),
		one("ensemble auth", func(c *conn) { c.auth("ensemble", "a") }),
	}, append(aclRows("sasl", "bob"), aclRows("x509", "CN=alice")...)...)},
	{"allow failed", saslKeys + "allowSaslFailedClients=true\n", []row{
		user("bob", "bob-secret"), user("bob", "wrong"), one("again and again", func(c *conn) {
			c.login("bob", "wrong", nil)
			c.sasl(3, []byte{})
			c.sasl(4, []byte("abc"))
			c.whoAmI()
		}),
		one("after success", func(c *conn) { c.login("bob", "bob-secret", nil); c.sasl(3, []byte{}); c.whoAmI() }),
	}},
	{"enforce sasl", enforcedSASL, enforcementRows()},
	{"session requires sasl", saslKeys + "sessionRequireClientSASLAuth=true\n", enforcementRows()},
	{"enforce sasl, allow failed", enforcedSASL + "allowSaslFailedClients=true\n", []row{user("bob", "wrong"), user("bob", "bob-secret")}},
	{"enforce digest", "enforce.auth.enabled=true\nenforce.auth.schemes=digest\n", enforcementRows()[:9]},
	{"enforce sasl and digest", saslKeys + "enforce.auth.enabled=true\nenforce.auth.schemes=sasl, digest\n", append(enforcementRows()[:6], user("bob", "bob-secret"))},
	{"enforce ip", "enforce.auth.enabled=true\nenforce.auth.schemes=ip\n", enforcementRows()[:3]},
	{"not enforced", saslKeys + "enforce.auth.schemes=sasl\n", enforcementRows()[:3]},
	{"no scheme", "enforce.auth.enabled=true\n", nil},
	{"unknown scheme", "enforce.auth.enabled=true\nenforce.auth.schemes=unheard-of\n", nil},
	{"scheme without provider", "java.security.auth.login.config=JAAS\nenforce.auth.enabled=true\nenforce.auth.schemes=sasl\n", nil},
	{"session requires sasl without provider", "java.security.auth.login.config=JAAS\nsessionRequireClientSASLAuth=true\n", []row{user("bob", "bob-secret")}},
	{"no section", "java.security.auth.login.config=JAAS\nsasl.serverconfig=Other\n", nil},
	{"ensemble", "authProvider.1=" + provider + "EnsembleAuthenticationProvider\nensembleAuthName=prod, test\n", append([]row{ensembleRow("prod"), ensembleRow("test"), ensembleRow(""), ensembleRow("other")}, aclRows("ensemble", "prod")...)},
	{"ensemble without name", "authProvider.1=" + provider + "EnsembleAuthenticationProvider\n", []row{ensembleRow("prod")}},
	{"unknown class", "authProvider.1=com.example.Own\n", []row{one("its scheme", func(c *conn) { c.auth("own", "x"); c.whoAmI() }), one("others", func(c *conn) { c.auth("digest", "u:p"); c.whoAmI() })}},
	{"x509 provider", "authProvider.1=" + provider + "X509AuthenticationProvider\n", append(aclRows("x509", x509IDs...), one("auth", func(c *conn) { c.auth("x509", "CN=a"); c.whoAmI() }))},
	{"skipACL", saslKeys + "skipACL=yes\n", matchRows},
	{"requireClientAuthScheme", saslKeys + "requireClientAuthScheme=sasl\n", enforcementRows()[:1]},
	{"extended types", "extendedTypesEnabled=true\n", []row{ttlRow}},
	{"no extended types", "extendedTypesEnabled=false\n", []row{ttlRow}},
}

// allowed are the rows that may differ.
var allowed = map[string]string{
	"digest, nc=00000002": onlyOnce,
	"digest, nc=1":        onlyOnce,
	"digest, nc=":         onlyOnce,
	`digest, username=""`: "the refusal of an empty name has an answer",
	"no provider, login of bob with bob-secret":     "whoAmI names the user without an authProvider, too",
	"session requires sasl without provider, start": "sessionRequireClientSASLAuth needs no authProvider",
	"no section, start":                             "a JAAS section that is named in the configuration must exist",
}

const onlyOnce = "a nonce is used once, and the client must say so"
