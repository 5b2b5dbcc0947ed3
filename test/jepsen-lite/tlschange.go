//go:build linux

package jepsenlite

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

// Ways in which RunTLSChange changes a member.
const (
	ByReload  = "reload"  // SIGHUP
	ByRestart = "restart" // SIGTERM, and a new process
)

// tlsStep is a step of the way from plain connections between members to TLS.
type tlsStep struct {
	name   string
	config string // lines of zoo.cfg
	tls    string // the value of gozkd_peer_tls when it is taken
}

var (
	plainStep    = tlsStep{"plain", "sslQuorum=false\nportUnification=false\n", "0"}
	acceptStep   = tlsStep{"accept TLS", "sslQuorum=false\nportUnification=true\n", "0"}
	dialStep     = tlsStep{"dial TLS", "sslQuorum=true\nportUnification=true\n", "1"}
	requiredStep = tlsStep{"TLS only", "sslQuorum=true\nportUnification=false\n", "1"}
)

// RunTLSChange takes an ensemble under load from plain connections between its members to TLS and
// back, member by member, until the time has passed; certificates are replaced meanwhile. A session
// that is lost, a connection of a client that a reload closes, and a refused connection between
// members are anomalies. It ignores the options Round and Faults.
func RunTLSChange(ctx context.Context, o Options, how string) (*Report, error) {
	if how != ByReload && how != ByRestart {
		return nil, fmt.Errorf("jepsenlite: no way %q to change TLS: know %s and %s", how, ByReload, ByRestart)
	}
	c := &tlsChange{ca: testca.New(must.T{}, "members"), how: how}
	return o.rounds(ClusterConfig{Direct: true}, test{
		loads: loads(),
		prepare: func(cluster *Cluster) {
			c.cluster = cluster
			for _, m := range cluster.Members {
				c.issue(m)
				replaceFile(m.trustStore(), c.ca.CertPEM())
				c.configure(m, plainStep)
			}
		},
		more:  func(r *Report) bool { return r.Took < o.Time },
		run:   func(r *round) (*roundResult, error) { return c.round(ctx, r) },
		judge: func(_ *round, report *Report, _ *roundResult) []Anomaly { return c.judge(report) },
	})
}

// The steps of a round.
var (
	there = []tlsStep{acceptStep, dialStep, requiredStep}
	back  = []tlsStep{dialStep, acceptStep, plainStep}
)

// tlsChange is a run of RunTLSChange.
type tlsChange struct {
	cluster   *Cluster
	ca        *testca.CA
	how       string
	connsLost int // before this round
}

// issue writes a new key and certificate of a member.
func (c *tlsChange) issue(m *Member) {
	cert := c.ca.Issue(must.T{}, testca.Spec{CN: m.String(), Hosts: []string{hostName(m.ID), fmt.Sprintf("gozkd://jepsen/%d", m.ID)}})
	replaceFile(m.keyStore(), append(cert.KeyPEM(must.T{}), cert.CertPEM()...))
}

func (m *Member) keyStore() string   { return filepath.Join(m.dir, "key.pem") }
func (m *Member) trustStore() string { return filepath.Join(m.dir, "ca.pem") }

// replaceFile writes a file atomically.
func replaceFile(path string, content []byte) {
	must.Do(os.WriteFile(path+".new", content, 0o600))
	must.Do(os.Rename(path+".new", path))
}

// configure writes the zoo.cfg of a member at a step.
func (c *tlsChange) configure(m *Member, s tlsStep) {
	replaceFile(filepath.Join(m.dir, "zoo.cfg"),
		fmt.Appendf(nil, "%s%sssl.quorum.keyStore.location=%s\nssl.quorum.trustStore.location=%s\ngozkd.peer.tlsEnsemble=jepsen\n",
			c.cluster.zooCfg(m.ID), s.config, m.keyStore(), m.trustStore()))
}

// round takes all steps there and back under load.
func (c *tlsChange) round(ctx context.Context, r *round) (*roundResult, error) {
	return r.underTraffic(ctx, func(_ *Traffic, res *roundResult) {
		must.Sleep(ctx, warm)
		for _, s := range slices.Concat(there, back) {
			must.Doing("step "+s.name, func() {
				for _, m := range r.cluster.Members {
					c.step(ctx, m, s)
				}
				c.awaitLinks(ctx, s)
			})
			r.log.Info("step", "name", s.name)
			res.faults["TLS step"]++
		}
		must.Sleep(ctx, afterwards)
	})
}

// step takes a member to a step, with a new certificate.
func (c *tlsChange) step(ctx context.Context, m *Member, s tlsStep) {
	c.issue(m)
	c.configure(m, s)
	if c.how == ByReload {
		must.Do(m.process.Signal(syscall.SIGHUP))
	} else {
		must.Do(m.process.Signal(syscall.SIGTERM))
		<-m.process.Done()
		c.cluster.Start(m)
		c.cluster.AwaitServing(ctx)
	}
	must.Sleep(ctx, time.Second)
}

// awaitLinks returns when every link between members is what a step asks for.
func (c *tlsChange) awaitLinks(ctx context.Context, s tlsStep) {
	must.Await(ctx, recovery, "the links between members", func() error {
		for _, m := range c.cluster.Members {
			mntr, err := server.Monitored(ctx, m.Client)
			if err != nil {
				return err
			}
			for _, o := range c.cluster.Members {
				for _, key := range []string{"tls", "incoming_tls"} {
					if name := fmt.Sprintf("zk_gozkd_peer_%d_%s", o.ID, key); o != m && mntr[name] != s.tls {
						return fmt.Errorf("%s of %v is %q, want %s", name, m, mntr[name], s.tls)
					}
				}
			}
		}
		return nil
	})
}

// judge returns the violations during a change, besides those that every history is checked for.
func (c *tlsChange) judge(report *Report) (found []Anomaly) {
	add := func(format string, args ...any) {
		found = append(found, Anomaly{Check: "tls-change", What: fmt.Sprintf(format, args...)})
	}
	if report.SessionsLost > 0 {
		add("%d sessions were lost", report.SessionsLost)
	}
	if n := report.ConnsLost - c.connsLost; c.how == ByReload && n > 0 {
		add("%d connections of clients were closed", n)
	}
	c.connsLost = report.ConnsLost
	for _, m := range c.cluster.Members {
		log := must.Get(os.ReadFile(m.LogPath()))
		for _, bad := range []string{"connection from peer refused", "TLS handshake", "cannot be used", "not reloaded"} {
			if n := bytes.Count(log, []byte(bad)); n > 0 {
				add("the log of %v has %d lines with %q", m, n, bad)
			}
		}
	}
	return found
}
