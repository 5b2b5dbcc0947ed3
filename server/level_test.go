package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// become restarts a member as a version with this highest feature level.
func (m *ensembleMember) become(most uint64) {
	m.e.t.Helper()
	m.stop()
	m.setLevels(most)
	m.e.start(m.id)
	m.e.awaitVoters(1, 2, 3)
}

func (m *ensembleMember) setLevels(most uint64) {
	before := m.adapt
	m.adapt = func(c *server.Config) {
		before(c)
		server.SetLevels(c, most)
	}
}

// wantLevel waits for a while, and checks the active level of all members.
func (e *ensemble) wantLevel(when string, want uint64) {
	e.t.Helper()
	time.Sleep(time.Second)
	for _, m := range e.members {
		if got := uint64(server.StatusOf(m.s).Level); got != want {
			e.t.Errorf("%s: member %d has level %d, want %d", when, m.id, got, want)
		}
	}
}

// During a rolling upgrade, back, and forth again, clients lose no session and see one order of all
// changes. The level rises only when all members are of the new version. From then on the old
// version is refused.
func TestHistory_RollingUpgrade(t *testing.T) {
	p := plan{seed: 1, disk: true, clients: 2, level: 1, then: func(e *ensemble) {
		others, last := e.followers(), e.m(e.leader())
		a, b := e.m(others[0]), e.m(others[1])
		a.become(2)
		b.become(2)
		e.wantLevel("one is of the old version", 1)
		b.become(1)
		a.become(1)
		e.wantLevel("all are back", 1)
		a.become(2)
		b.become(2)
		last.become(2)
		e.wantLevel("all are of the new version", 2)

		b.stop()
		b.setLevels(1)
		err := b.begin(e.lines())()
		if err == nil || !strings.Contains(err.Error(), "has level 2, this program supports 1: start a version of gozkd that supports level 2") {
			e.t.Errorf("the old version starts: %v", err)
		}
		b.become(2)
		e.wantLevel("after all", 2)
	}}
	history, err := p.run(t)
	if err == nil {
		err = checkHistory(history)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d requests", len(history))
}

// A member that holds the level back can let it go without a restart.
func TestReload_MaxFeatureLevel(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.each(func(c *server.Config) { server.SetLevels(c, 2) })
		e.m(2).adapt = func(c *server.Config) {
			server.SetLevels(c, 2)
			c.MaxFeatureLevel = 1
		}
		e.startAll()
		e.wantLevel("held back", 1)
		cfg := e.m(2).s
		if m := e.monitor(2); m["zk_gozkd_feature_level"] != "1" || m["zk_gozkd_feature_level_max"] != "1" {
			t.Errorf("mntr says %s of %s", m["zk_gozkd_feature_level"], m["zk_gozkd_feature_level_max"])
		}
		if restart, err := cfg.Reload(server.ReloadedWith(cfg, func(c *server.Config) { c.MaxFeatureLevel = 0 })); err != nil || restart != nil {
			t.Fatal(restart, err)
		}
		e.wantLevel("let go", 2)
		if m := e.monitor(2); m["zk_gozkd_feature_level"] != "2" || m["zk_gozkd_feature_level_max"] != "2" {
			t.Errorf("mntr says %s of %s", m["zk_gozkd_feature_level"], m["zk_gozkd_feature_level_max"])
		}
	})
}

// The schemes of ACLs and the refusal of TTLs are those of the server that a client is connected
// to, and have the same effect on all members.
func TestSettings_SchemesAndTTL(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		auth := server.Authentication{SASL: saslUsers("bob", "super"), LetAnySASLUserDoX: "X", ACLSchemes: []string{"sasl", "x509"}}
		for _, m := range e.members {
			m.adapt = func(c *server.Config) {
				if m.id == 1 { // the settings of others do not count for its clients
					c.Auth, c.RefuseTTL = auth, true
				}
			}
		}
		e.startAll()
		e.settle()
		sasl := func(id string) proto.ID { return proto.ID{Scheme: "sasl", ID: id} }
		made := 0
		tryAll := func(r *raw) (codes []proto.ErrCode) {
			made++
			acl := func(id proto.ID) record {
				return rawBody((&proto.CreateRequest{Path: fmt.Sprintf("/%s%s%d", id.Scheme, id.ID[:1], made), ACL: []proto.ACL{{Perms: proto.PermAll, ID: id}}}).Append(nil, proto.OpCreate))
			}
			for _, id := range []proto.ID{sasl("X"), sasl("eve"), {Scheme: "x509", ID: "CN=a"}} {
				h, _ := r.call(1, proto.OpCreate, acl(id))
				codes = append(codes, h.Err)
			}
			h, _ := r.call(2, proto.OpCreateTTL, create{path: fmt.Sprintf("/ttl%d", made), op: proto.OpCreateTTL, mode: proto.ModePersistentTTL, ttl: 1e9})
			return append(codes, h.Err)
		}
		no, yes := proto.ErrInvalidACL, proto.OK
		first := e.connect(1, time.Minute)
		if code := first.login("bob", "bob-secret"); code != proto.OK {
			t.Fatal(code)
		}
		if got := tryAll(first); !slices.Equal(got, []proto.ErrCode{yes, yes, yes, proto.ErrUnimplemented}) {
			t.Errorf("on its server: %v", got)
		}
		if got := tryAll(e.connect(2, time.Minute)); !slices.Equal(got, []proto.ErrCode{no, no, no, yes}) {
			t.Errorf("on a server with other settings: %v", got)
		}
		for user, want := range map[string][]proto.ErrCode{"bob": {yes, proto.ErrNoAuth, proto.ErrNoAuth}, "super": {yes, yes, proto.ErrNoAuth}} {
			r := e.connect(1, time.Minute)
			if code := r.login(user, user+"-secret"); code != proto.OK {
				t.Fatalf("%s: %v", user, code)
			}
			var got []proto.ErrCode
			for _, path := range []string{"/saslX1", "/sasle1", "/x509C1"} {
				h, _ := r.call(1, proto.OpSetData, &proto.SetDataRequest{Path: path, Version: -1})
				got = append(got, h.Err)
			}
			if ids := r.identities(); !slices.Equal(got, want) || ids != "sasl:"+user {
				t.Errorf("%s, who is %s: %v, want %v", user, ids, got, want)
			}
		}
		e.settle()
		states := map[string]bool{}
		for _, m := range e.members {
			states[server.StateOf(m.s)] = true
		}
		if len(states) != 1 {
			t.Errorf("the members have the states %v", states)
		}
	})
}
