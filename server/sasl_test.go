package server_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/sasl"
	"github.com/gozkd/gozkd/server"
)

// saslUsers are users of DIGEST-MD5, each with the password NAME-secret.
func saslUsers(names ...string) sasl.Server {
	users := make(sasl.DigestUsers)
	for _, name := range names {
		users.Set(name, name+"-secret")
	}
	return sasl.NewDigest(users)
}

// saslReply is the reply to a sasl request.
type saslReply struct {
	code  proto.ErrCode
	token []byte // nil: null
}

// saslCall sends a token, nil for null, and checks the form of the reply: the body is there with
// errors, too, and the zxid is 0. It returns nil if the server closes the connection.
func (r *raw) saslCall(xid int32, token []byte) *saslReply {
	r.t.Helper()
	r.request(xid, proto.OpSASL, &proto.TokenRecord{Token: token})
	b := r.recv()
	if b == nil {
		return nil
	}
	h, d := decodeReply(b)
	var rec proto.TokenRecord
	if rec.Decode(d); d.Err() != nil || d.Remaining() != 0 || h.Xid != xid || h.Zxid != 0 {
		r.t.Fatalf("reply %x to a sasl request", b)
	}
	return &saslReply{h.Err, rec.Token}
}

// login plays an exchange of DIGEST-MD5 and returns the code of the last reply.
func (r *raw) login(user, password string) proto.ErrCode {
	r.t.Helper()
	return r.slowLogin(user, password, 0)
}

// slowLogin is login for a client that waits before each token.
func (r *raw) slowLogin(user, password string, wait time.Duration) proto.ErrCode {
	r.t.Helper()
	x, err := sasl.NewDigestClient(user, password).New("")
	if err != nil {
		r.t.Fatal(err)
	}
	var token []byte
	for xid := int32(1); ; xid++ {
		time.Sleep(wait)
		answer, done, err := x.Step(token)
		if err != nil {
			r.t.Fatal(err)
		}
		if done {
			return proto.OK
		}
		reply := r.saslCall(xid, answer)
		if reply == nil {
			r.t.Fatal("closed within an exchange")
		}
		if reply.code != proto.OK || reply.token == nil {
			return reply.code
		}
		token = reply.token
	}
}

// identities returns what the client has proved, as scheme:user.
func (r *raw) identities() string {
	r.t.Helper()
	all := strings.Fields(r.whoAmI())
	return strings.Join(slices.DeleteFunc(all, func(id string) bool { return strings.HasPrefix(id, "ip:") }), " ")
}

func TestSASL_Digest(t *testing.T) {
	auth := server.Authentication{SASL: saslUsers("bob", "eve", "super"), SASLSupers: []string{"eve", "nobody"}, LetAnySASLUserDoX: "X"}
	for _, c := range []struct {
		user, password string
		want           proto.ErrCode
		ids            string
	}{
		{"bob", "bob-secret", proto.OK, "sasl:bob"},
		{"eve", "eve-secret", proto.OK, "sasl:eve super:"},
		{"super", "super-secret", proto.OK, "sasl:super"},
		{"bob", "eve-secret", proto.ErrAuthFailed, ""},
		{"mallory", "", proto.ErrAuthFailed, ""},
	} {
		bubble(t, server.Config{Auth: auth}, func(t *testing.T, dial func() *raw) {
			r := dial()
			r.connect(10_000, 0, nil)
			if got := r.login(c.user, c.password); got != c.want {
				t.Errorf("%s: %v, want %v", c.user, got, c.want)
			}
			if c.want != proto.OK {
				if b := r.recv(); b != nil {
					t.Errorf("%s: %x after the failure", c.user, b)
				}
				return
			}
			if got := r.identities(); got != c.ids {
				t.Errorf("%s is %q, want %q", c.user, got, c.ids)
			}
			if reply := r.saslCall(5, []byte{}); reply == nil || reply.code != proto.ErrAuthFailed || reply.token != nil {
				t.Errorf("a second exchange: %v", reply)
			}
			if b := r.recv(); b != nil {
				t.Errorf("%x after a second exchange", b)
			}
		})
	}
}

func TestSASL_NullToken(t *testing.T) {
	bubble(t, server.Config{Auth: server.Authentication{SASL: saslUsers("bob")}}, func(t *testing.T, dial func() *raw) {
		r := dial()
		r.connect(10_000, 0, nil)
		if reply := r.saslCall(1, nil); reply != nil {
			t.Error(reply)
		}
	})
}

func TestSASL_NotConfigured(t *testing.T) {
	for _, linearizable := range []bool{false, true} {
		bubble(t, server.Config{LinearizableReads: linearizable}, func(t *testing.T, dial func() *raw) {
			r := dial()
			r.connect(10_000, 0, nil)
			for xid := range int32(3) {
				if reply := r.saslCall(xid, []byte("abc")); reply == nil || reply.code != proto.OK || reply.token != nil {
					t.Error(reply)
				}
			}
			r.ping()
		})
	}
}

// allowSaslFailedClients: the connection stays, without an identity and without another exchange.
func TestSASL_AllowFailed(t *testing.T) {
	auth := server.Authentication{SASL: saslUsers("bob"), AllowFailedSASL: true}
	bubble(t, server.Config{Auth: auth}, func(t *testing.T, dial func() *raw) {
		r := dial()
		r.connect(10_000, 0, nil)
		if code := r.login("bob", "wrong"); code != proto.OK {
			t.Fatal(code)
		}
		for xid := range int32(3) {
			if reply := r.saslCall(xid, []byte{}); reply == nil || reply.code != proto.OK || reply.token != nil {
				t.Error(reply)
			}
		}
		if ids := r.identities(); ids != "" {
			t.Error(ids)
		}
	})
	auth.Required = []string{"sasl"}
	bubble(t, server.Config{Auth: auth}, func(t *testing.T, dial func() *raw) {
		r := dial()
		r.connect(10_000, 0, nil)
		if code := r.login("bob", "wrong"); code != proto.ErrSessionClosedRequireSASLAuth {
			t.Error(code)
		}
		if b := r.recv(); b != nil {
			t.Errorf("%x", b)
		}
	})
}

// The first ordinary request of a client without a required identity is answered -124, with 16
// bytes, and nothing of it is done. auth and sasl may come before. The session was established.
func TestEnforcement_FirstRequest(t *testing.T) {
	for name, first := range map[string][]byte{
		"ping":         encodeRequest(proto.XidPing, proto.OpPing, nil),
		"closeSession": encodeRequest(7, proto.OpCloseSession, nil),
		"exists":       encodeRequest(7, proto.OpExists, &proto.PathWatchRequest{Path: "/"}),
		"create":       encodeRequest(7, proto.OpCreate, create{path: "/a", op: proto.OpCreate}),
		"sync":         encodeRequest(7, proto.OpSync, &proto.PathRequest{Path: new("/")}),
		"unknown":      encodeRequest(7, 999, nil),
	} {
		auth := server.Authentication{SASL: saslUsers("bob"), Required: []string{"sasl", "x509"}}
		l := new(trail)
		bubble(t, server.Config{Auth: auth, Audit: l}, func(t *testing.T, dial func() *raw) {
			r := dial()
			session := r.connect(10_000, 0, nil).SessionID
			if h, _ := r.call(proto.XidAuth, proto.OpAuth, &proto.AuthRequest{Scheme: "digest", Auth: []byte("u:p")}); h.Err != proto.OK {
				t.Fatal(h.Err)
			}
			l.take()
			r.burst(first, encodeRequest(8, proto.OpCreate, create{path: "/b", op: proto.OpCreate}))
			b := r.recv()
			if h, _ := decodeReply(b); len(b) != 16 || h.Zxid != 0 || h.Err != proto.ErrSessionClosedRequireSASLAuth || h.Xid != 7 && h.Xid != proto.XidPing {
				t.Errorf("%s: %x", name, b)
			}
			if b := r.recv(); b != nil {
				t.Errorf("%s: %x after the refusal", name, b)
			}
			if events := l.take(); len(events) != 1 || !strings.Contains(events[0], " -124 none before ") {
				t.Errorf("%s: the audit log has %q", name, events)
			}
			// The session lives: its client can come back, and authenticate itself.
			again := dial()
			if got := again.connect(10_000, session, r.pass).SessionID; got != session {
				t.Errorf("%s: the session is over", name)
			}
			if code := again.login("bob", "bob-secret"); code != proto.OK {
				t.Error(code)
			}
			for _, path := range []string{"/a", "/b"} {
				if h, _ := again.call(3, proto.OpExists, &proto.PathWatchRequest{Path: path}); h.Err != proto.ErrNoNode {
					t.Errorf("%s: %s: %v", name, path, h.Err)
				}
			}
		})
	}
}

func TestEnforcement_Schemes(t *testing.T) {
	for _, c := range []struct {
		required []string
		digest   bool
		want     proto.ErrCode
	}{
		{nil, false, proto.OK},
		{[]string{"ip"}, false, proto.OK},
		{[]string{"digest"}, false, proto.ErrSessionClosedRequireSASLAuth},
		{[]string{"digest"}, true, proto.OK},
		{[]string{"sasl", "digest"}, true, proto.OK},
		{[]string{"sasl"}, true, proto.ErrSessionClosedRequireSASLAuth},
		{[]string{"x509"}, true, proto.ErrSessionClosedRequireSASLAuth},
	} {
		bubble(t, server.Config{Auth: server.Authentication{Required: c.required}}, func(t *testing.T, dial func() *raw) {
			r := dial()
			r.connect(10_000, 0, nil)
			if c.digest {
				r.call(proto.XidAuth, proto.OpAuth, &proto.AuthRequest{Scheme: "digest", Auth: []byte("u:p")})
			}
			if h, _ := r.call(1, proto.OpExists, &proto.PathWatchRequest{Path: "/"}); h.Err != c.want {
				t.Errorf("%v: %v, want %v", c, h.Err, c.want)
			}
		})
	}
	for _, bad := range []server.Authentication{{Required: []string{"key"}}, {Required: []string{""}}, {ACLSchemes: []string{"ip"}}} {
		if _, err := server.New(server.Config{Auth: bad}); err == nil || !strings.Contains(err.Error(), "Auth.") {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

// After a reload, enforcement also concerns connections that were there before.
func TestEnforcement_Reload(t *testing.T) {
	serverBubble(t, server.Config{}, func(t *testing.T, s *server.Server, dial func() *raw) {
		r := dial()
		r.connect(10_000, 0, nil)
		r.ping()
		auth := server.Authentication{SASL: saslUsers("bob"), Required: []string{"sasl"}}
		if restart, err := s.Reload(server.ReloadedWith(s, func(c *server.Config) { c.Auth = auth })); err != nil || restart != nil {
			t.Fatal(restart, err)
		}
		if h, _ := r.call(1, proto.OpExists, &proto.PathWatchRequest{Path: "/"}); h.Err != proto.ErrSessionClosedRequireSASLAuth {
			t.Error(h.Err)
		}
		other := dial()
		other.connect(10_000, 0, nil)
		if code := other.login("bob", "bob-secret"); code != proto.OK {
			t.Error(code)
		}
		other.ping()
		auth.SASL = saslUsers("alice")
		if _, err := s.Reload(server.ReloadedWith(s, func(c *server.Config) { c.Auth = auth })); err != nil {
			t.Fatal(err)
		}
		other.ping() // who has authenticated stays
		third := dial()
		third.connect(10_000, 0, nil)
		if code := third.login("bob", "bob-secret"); code != proto.ErrSessionClosedRequireSASLAuth {
			t.Error(code)
		}
	})
}

// slowSASL wants one token more each time, and notes how many exchanges run.
type slowSASL struct{ steps *int }

func (s slowSASL) New() sasl.Exchange { return s }

func (s slowSASL) Step([]byte) ([]byte, string, bool, error) {
	*s.steps++
	return []byte{1}, "", false, nil
}

// An exchange has a bound in tokens, in bytes and in time.
func TestSASL_Bounds(t *testing.T) {
	steps := 0
	cfg := server.Config{Auth: server.Authentication{SASL: slowSASL{&steps}}, HandshakeTimeout: 10 * time.Second}
	bubble(t, cfg, func(t *testing.T, dial func() *raw) {
		failed := func(r *raw, xid int32, token []byte) bool {
			reply := r.saslCall(xid, token)
			if reply == nil || reply.code != proto.OK && (reply.code != proto.ErrAuthFailed || reply.token != nil || r.recv() != nil) {
				t.Fatal(reply)
			}
			return reply.code != proto.OK
		}
		tokens := dial()
		tokens.connect(60_000, 0, nil)
		n := int32(0)
		for ; !failed(tokens, n, []byte{}); n++ {
		}
		if n != 16 || steps != 16 {
			t.Errorf("failed after %d tokens, %d steps", n, steps)
		}
		late := dial()
		late.connect(60_000, 0, nil)
		if failed(late, 1, []byte{}) {
			t.Error("the first token fails")
		}
		time.Sleep(11 * time.Second)
		if !failed(late, 2, []byte{}) {
			t.Error("a late token is accepted")
		}
		long := dial()
		long.connect(60_000, 0, nil)
		if !failed(long, 1, make([]byte, 129<<10)) {
			t.Error("a long token is accepted")
		}
	})
}

// planted is a mechanism whose steps fail.
type planted struct{}

func (planted) New() sasl.Exchange { return planted{} }

func (planted) Step([]byte) ([]byte, string, bool, error) {
	return nil, "", false, errors.New("the\nreason")
}

// Replies come in the order of requests, also around an exchange, and log lines show no secret.
func TestSASL_OrderAndLog(t *testing.T) {
	var log bytes.Buffer
	cfg := server.Config{
		Auth:   server.Authentication{SASL: sasl.Either(planted{}, saslUsers("bob"))},
		Logger: hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Trace}),
	}
	bubble(t, cfg, func(t *testing.T, dial func() *raw) {
		r := dial()
		r.connect(10_000, 0, nil)
		r.burst(
			encodeRequest(1, proto.OpCreate, create{path: "/a", op: proto.OpCreate}),
			encodeRequest(2, proto.OpSASL, &proto.TokenRecord{Token: []byte{}}),
			encodeRequest(3, proto.OpExists, &proto.PathWatchRequest{Path: "/a"}),
			encodeRequest(4, proto.OpSASL, &proto.TokenRecord{Token: []byte(`username="bob",response=plantedsecret`)}),
			encodeRequest(5, proto.OpCreate, create{path: "/b", op: proto.OpCreate}),
		)
		var xids []int32
		for b := r.recv(); b != nil; b = r.recv() {
			h, _ := decodeReply(b)
			xids = append(xids, h.Xid)
		}
		if !slices.Equal(xids, []int32{1, 2, 3, 4}) {
			t.Errorf("replies to %v", xids)
		}
		gss := dial()
		gss.connect(10_000, 0, nil)
		if reply := gss.saslCall(1, []byte{0x60}); reply == nil || reply.code != proto.ErrAuthFailed {
			t.Error(reply)
		}
		good := dial()
		good.connect(10_000, 0, nil)
		if h, _ := good.call(1, proto.OpExists, &proto.PathWatchRequest{Path: "/b"}); h.Err != proto.ErrNoNode {
			t.Error("a request after the failure was carried out")
		}
		if code := good.login("bob", "bob-secret"); code != proto.OK {
			t.Error(code)
		}
	})
	if text := log.String(); strings.Contains(text, "secret") || strings.Count(text, "authentication failed") != 2 {
		t.Error(text)
	}
}

// What a client sends behind a request that ends its connection is not carried out, even if replies
// to earlier requests are still awaited.
func TestAuth_NothingAfterAFailure(t *testing.T) {
	for name, last := range map[string][]byte{
		"auth":    encodeRequest(2, proto.OpAuth, &proto.AuthRequest{Scheme: "unheard-of"}),
		"sasl":    encodeRequest(2, proto.OpSASL, &proto.TokenRecord{Token: []byte{0x60}}),
		"unknown": encodeRequest(2, 999, nil),
	} {
		bubble(t, server.Config{Auth: server.Authentication{SASL: planted{}}}, func(t *testing.T, dial func() *raw) {
			r := dial()
			r.connect(10_000, 0, nil)
			r.burst(encodeRequest(1, proto.OpCreate, create{path: "/a", op: proto.OpCreate}), last, encodeRequest(3, proto.OpCreate, create{path: "/b", op: proto.OpCreate}))
			n := 0
			for r.recv() != nil {
				n++
			}
			other := dial()
			other.connect(10_000, 0, nil)
			if h, _ := other.call(1, proto.OpExists, &proto.PathWatchRequest{Path: "/b"}); n != 2 || h.Err != proto.ErrNoNode {
				t.Errorf("%s: %d replies, %v", name, n, h.Err)
			}
		})
	}
}

// The scheme ensemble gives no identity: it sends clients away that look for another ensemble.
func TestAuth_Ensemble(t *testing.T) {
	for _, c := range []struct {
		auth   server.Authentication
		name   string
		code   proto.ErrCode
		closed bool // without an answer
	}{
		{server.Authentication{}, "prod", proto.ErrAuthFailed, false},
		{server.Authentication{Ensemble: true}, "prod", proto.OK, false},
		{server.Authentication{Ensemble: true, EnsembleNames: []string{"prod", "test"}}, "test", proto.OK, false},
		{server.Authentication{Ensemble: true, EnsembleNames: []string{"prod"}}, "", proto.OK, false},
		{server.Authentication{Ensemble: true, EnsembleNames: []string{"prod"}}, "test", 0, true},
	} {
		bubble(t, server.Config{Auth: c.auth}, func(t *testing.T, dial func() *raw) {
			r := dial()
			r.connect(10_000, 0, nil)
			r.request(proto.XidAuth, proto.OpAuth, &proto.AuthRequest{Scheme: "ensemble", Auth: []byte(c.name)})
			b := r.recv()
			if (b == nil) != c.closed {
				t.Fatalf("%v: %x", c, b)
			}
			if b == nil {
				return
			}
			if h, _ := decodeReply(b); h.Err != c.code {
				t.Errorf("%v: %v", c, h.Err)
			}
			if c.code == proto.OK {
				if ids := r.identities(); ids != "" {
					t.Error(ids)
				}
			}
		})
	}
}
