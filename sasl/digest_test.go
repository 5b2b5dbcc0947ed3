package sasl_test

import (
	"crypto/md5" //nolint:gosec // DIGEST-MD5 is defined with it
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/sasl"
)

func users() sasl.DigestUsers {
	u := make(sasl.DigestUsers)
	u.Set("bob", "bobsecret")
	u.Set("jürgen", "größe")
	u.Set("ирина", "secret")
	u.Set(`qu"ote\`, `p"w\`)
	return u
}

// exchange plays a whole exchange.
func exchange(s sasl.Server, c sasl.Client) (id string, err error) {
	server := s.New()
	client, err := c.New("localhost")
	if err != nil {
		return "", err
	}
	var token []byte
	for range 10 {
		reply, clientDone, err := client.Step(token)
		if err != nil {
			return "", fmt.Errorf("client: %w", err)
		}
		if reply == nil {
			return id, nil
		}
		var done bool
		if token, id, done, err = server.Step(reply); err != nil {
			return "", err
		}
		if done && clientDone {
			return id, nil
		}
	}
	return "", errors.New("the exchange does not end")
}

func TestDigest_BothSides(t *testing.T) {
	for _, c := range []struct{ user, password, want string }{
		{"bob", "bobsecret", "bob"},
		{"jürgen", "größe", "jürgen"},
		{"ирина", "secret", "ирина"},
		{`qu"ote\`, `p"w\`, `qu"ote\`},
		{"bob", "bobsecres", ""},
		{"bob", "", ""},
		{"nobody", "bobsecret", ""},
		{"", "", ""},
	} {
		id, err := exchange(sasl.NewDigest(users()), sasl.NewDigestClient(c.user, c.password))
		if id != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s:%s is %q, %v", c.user, c.password, id, err)
		}
		if err != nil && (!errors.Is(err, sasl.ErrRefused) || err.Error() != "sasl: authentication refused: unknown user or wrong password") {
			t.Errorf("%s: %v", c.user, err)
		}
	}
}

// answer makes the second token of a client. fields replaces directives; an empty value leaves one
// out.
type answer struct {
	password string
	fields   map[string]string
}

func (a answer) token(t *testing.T, challenge []byte) string {
	t.Helper()
	m := regexp.MustCompile(`^realm="zk-sasl-md5",nonce="([A-Za-z0-9+/]{40})",charset=utf-8,algorithm=md5-sess$`).FindSubmatch(challenge)
	if m == nil {
		t.Fatalf("challenge %s", challenge)
	}
	d := map[string]string{
		"charset": "utf-8", "username": `"bob"`, "realm": `"zk-sasl-md5"`, "nonce": `"` + string(m[1]) + `"`, "nc": "00000001",
		"cnonce": `"abc"`, "digest-uri": `"zookeeper/zk-sasl-md5"`, "maxbuf": "65536", "qop": "auth",
	}
	maps.Copy(d, a.fields)
	sum := func(s string) string { b := md5.Sum([]byte(s)); return hex.EncodeToString(b[:]) }
	bare := func(name string) string { return strings.Trim(d[name], `"`) }
	a1 := md5.Sum([]byte(bare("username") + ":" + bare("realm") + ":" + a.password))
	whole := string(a1[:]) + ":" + bare("nonce") + ":" + bare("cnonce")
	if _, ok := d["authzid"]; ok {
		whole += ":" + bare("authzid")
	}
	qop := bare("qop")
	if qop == "" {
		qop = "auth"
	}
	if _, ok := d["response"]; !ok {
		a2 := "AUTHENTICATE:" + bare("digest-uri")
		if qop != "auth" {
			a2 += ":00000000000000000000000000000000"
		}
		d["response"] = sum(sum(whole) + ":" + bare("nonce") + ":" + bare("nc") + ":" + bare("cnonce") + ":" + qop + ":" + sum(a2))
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(d)) {
		if d[name] != "" {
			parts = append(parts, name+"="+d[name])
		}
	}
	return strings.Join(parts, ",")
}

func TestDigest_Responses(t *testing.T) {
	with := func(pairs ...string) answer {
		a := answer{password: "bobsecret", fields: make(map[string]string)}
		for i := 0; i < len(pairs); i += 2 {
			a.fields[pairs[i]] = pairs[i+1]
		}
		return a
	}
	for _, c := range []struct {
		name string
		a    answer
		ok   bool
	}{
		{"as is", with(), true},
		{"without qop", with("qop", ""), true},
		{"without maxbuf", with("maxbuf", ""), true},
		{"without charset", with("charset", ""), true},
		{"authzid is ignored", with("authzid", `"super"`), true},
		{"unknown directive", with("foo", `"b,a=r"`), true},
		{"other case of the uri", with("digest-uri", `"ZooKeeper/zk-sasl-md5"`), true},
		{"wrong password", answer{password: "x"}, false},
		{"unknown user", with("username", `"mallory"`), false},
		{"no user", with("username", ""), false},
		{"other realm", with("realm", `"other"`), false},
		{"empty realm", with("realm", `""`), false},
		{"no realm", with("realm", ""), false},
		{"other service", with("digest-uri", `"imap/zk-sasl-md5"`), false},
		{"other host", with("digest-uri", `"zookeeper/localhost"`), false},
		{"no uri", with("digest-uri", ""), false},
		{"other nonce", with("nonce", `"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"`), false},
		{"auth-int", with("qop", "auth-int"), false},
		{"nc 2", with("nc", "00000002"), false},
		{"no cnonce", with("cnonce", ""), false},
		{"other charset", with("charset", "utf-16"), false},
		{"short response", with("response", "00"), false},
	} {
		x := sasl.NewDigest(users()).New()
		challenge, _, done, err := x.Step([]byte("abc"))
		if err != nil || done {
			t.Fatal(done, err)
		}
		reply, id, done, err := x.Step([]byte(c.a.token(t, challenge)))
		if c.ok {
			if err != nil || id != "bob" || !done || !regexp.MustCompile("^rspauth=[0-9a-f]{32}$").Match(reply) {
				t.Errorf("%s: %q, %q, %v, %v", c.name, reply, id, done, err)
			}
		} else if err == nil || !errors.Is(err, sasl.ErrRefused) || reply != nil || id != "" || done {
			t.Errorf("%s: %q, %q, %v, %v", c.name, reply, id, done, err)
		}
		if _, _, _, err := x.Step(nil); err == nil {
			t.Errorf("%s: a step after the end", c.name)
		}
	}
}

// A response proves something in its own exchange only.
func TestDigest_Replay(t *testing.T) {
	s := sasl.NewDigest(users())
	a, b := s.New(), s.New()
	challenge, _, _, _ := a.Step([]byte{})
	if _, _, _, err := b.Step([]byte{}); err != nil {
		t.Fatal(err)
	}
	token := []byte(answer{password: "bobsecret"}.token(t, challenge))
	if _, _, _, err := b.Step(token); err == nil {
		t.Error("the response of another exchange is accepted")
	}
	if _, id, _, err := a.Step(token); err != nil || id != "bob" {
		t.Error(id, err)
	}
}

// A client does not believe a server that does not know the password.
func TestDigestClient_ForeignServer(t *testing.T) {
	for token, want := range map[string]string{
		`realm="zk-sasl-md5",nonce="x",charset=utf-8,algorithm=md5-sess`: "",
		`realm="other",nonce="x"`:   "realm",
		`realm="zk-sasl-md5"`:       "no nonce",
		`realm="zk-sasl-md5`:        "does not end",
		"\x60\x82":                  "name=value",
		`realm="a",realm="b"`:       "repeated",
		strings.Repeat("a=b,", 2e3): "4096",
	} {
		x, err := sasl.NewDigestClient("bob", "bobsecret").New("localhost")
		if err != nil {
			t.Fatal(err)
		}
		if reply, done, err := x.Step(nil); reply == nil || len(reply) > 0 || done || err != nil {
			t.Fatal(reply, done, err)
		}
		_, _, err = x.Step([]byte(token))
		if want == "" {
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err = x.Step([]byte("rspauth=" + strings.Repeat("0", 32))); err == nil {
				t.Error("a wrong rspauth is accepted")
			}
		} else if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", token, err)
		}
	}
}

func TestDigestUsers_SetHash(t *testing.T) {
	sum := md5.Sum([]byte("bob:zk-sasl-md5:bobsecret"))
	u := make(sasl.DigestUsers)
	if err := u.SetHash("bob", hex.EncodeToString(sum[:])); err != nil {
		t.Fatal(err)
	}
	if id, err := exchange(sasl.NewDigest(u), sasl.NewDigestClient("bob", "bobsecret")); err != nil || id != "bob" {
		t.Error(id, err)
	}
	for _, bad := range []string{"", "00", strings.Repeat("g", 32), strings.Repeat("00", 17)} {
		if err := u.SetHash("bob", bad); err == nil || bad != "" && strings.Contains(err.Error(), bad) && len(bad) > 2 {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// counted is a mechanism that notes its first token.
type counted struct{ first *[]byte }

func (c counted) New() sasl.Exchange { return c }

func (c counted) Step(token []byte) ([]byte, string, bool, error) {
	*c.first = token
	return nil, "gss", true, nil
}

func TestEither(t *testing.T) {
	var first []byte
	gss, digest := counted{&first}, sasl.NewDigest(users())
	both := sasl.Either(gss, digest)
	if _, id, _, _ := both.New().Step([]byte{0x60, 0x82}); id != "gss" || first[0] != 0x60 {
		t.Error(id, first)
	}
	if id, err := exchange(both, sasl.NewDigestClient("bob", "bobsecret")); id != "bob" {
		t.Error(id, err)
	}
	if sasl.Either(nil, digest) != digest || sasl.Either(gss, nil) != sasl.Server(gss) || sasl.Either(nil, nil) != nil {
		t.Error("one mechanism is not itself")
	}
}

func FuzzDigest(f *testing.F) {
	for _, seed := range []string{
		"", "abc", `charset=utf-8,username="bob",realm="zk-sasl-md5",nonce="a",nc=00000001,cnonce="b",digest-uri="zookeeper/zk-sasl-md5",response=00,qop=auth`,
		`a="b\"c\\",,d = e ,`, `username="b`, `a="\`, `=`, `"a"=b`,
	} {
		f.Add([]byte(seed))
	}
	s, c := sasl.NewDigest(users()), sasl.NewDigestClient("bob", "bobsecret")
	f.Fuzz(func(t *testing.T, token []byte) {
		x := s.New()
		for range 2 {
			if _, id, done, err := x.Step(token); id != "" || done || err != nil && strings.Contains(err.Error(), "bobsecret") {
				t.Fatal(id, done, err)
			}
		}
		client, err := c.New("")
		for range 3 {
			if err != nil {
				break
			}
			var done bool
			if _, done, err = client.Step(token); done {
				t.Fatal("the client is satisfied")
			}
		}
	})
}
