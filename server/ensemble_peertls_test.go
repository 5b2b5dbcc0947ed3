package server_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/server"
)

// Three members move from plain connections to TLS and back under load, by Reload, one member after
// the other. The clients notice nothing: no connection is closed, no write is lost or applied
// twice, and none waits for as long as an election. Afterwards new certificates are used, and links
// that break are made again.
func TestEnsemble_PeerTLSStepByStep(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		ca := testca.New(t, "members")
		modes, certs, configs := make([]server.PeerTLSMode, 4), make([]*testca.Cert, 4), make([]server.Config, 4)
		renew := func(id int) {
			certs[id] = ca.Issue(t, testca.Spec{Hosts: []string{fmt.Sprintf("m%d", id), fmt.Sprintf("gozkd://%d", id)}})
		}
		for _, m := range e.members {
			renew(m.id)
			m.adapt = func(cfg *server.Config) { configs[m.id] = *cfg }
		}
		e.startAll()
		leader := e.leader()
		var load []*pipeline
		for _, m := range e.members {
			load = append(load, e.pipe(m.id, fmt.Sprintf("/on-%d", m.id)))
		}
		reload := func(m *ensembleMember) {
			cfg := configs[m.id]
			cfg.PeerTLS = server.PeerTLS{Mode: modes[m.id], Server: certs[m.id].Server(), Client: certs[m.id].Client}
			if restart, err := m.s.Reload(cfg); err != nil || len(restart) > 0 {
				t.Fatalf("%v %v", restart, err)
			}
			time.Sleep(time.Second)
		}
		links := func(want string) {
			t.Helper()
			for _, m := range e.members {
				for _, o := range m.s.Facts().Members() {
					if o.ID != m.id && (o.LinkTo != want || o.LinkFrom != want) {
						t.Errorf("member %d: %+v, want %s", m.id, o, want)
					}
				}
			}
		}
		type step struct {
			mode  server.PeerTLSMode
			links string
		}
		there := []step{{server.PeerTLSAccepted, "plain"}, {server.PeerTLSDialed, "TLS 1.3"}, {server.PeerTLSRequired, "TLS 1.3"}}
		back := []step{{server.PeerTLSDialed, "TLS 1.3"}, {server.PeerTLSAccepted, "plain"}, {server.PeerTLSOff, "plain"}}
		for _, step := range slices.Concat(there, exhaustive.Or(nil, slices.Concat(back, there))) {
			for _, m := range e.members {
				modes[m.id] = step.mode
				reload(m)
			}
			links(step.links)
		}
		for _, m := range e.members {
			renew(m.id)
			reload(m)
		}
		if e.leader() != leader {
			t.Errorf("member %d leads, and before it was member %d", e.leader(), leader)
		}
		for _, p := range load {
			p.stop()
			if p.slowest > 400*time.Millisecond {
				t.Errorf("%s: a write took %v", p.path, p.slowest)
			}
		}
		m := e.m(leader)
		m.isolate(true) // the links break, so the new certificates are shown
		time.Sleep(10 * time.Second)
		m.isolate(false)
		time.Sleep(10 * time.Second)
		links("TLS 1.3")
	})
}
