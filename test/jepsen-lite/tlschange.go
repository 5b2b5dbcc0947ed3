//go:build linux

package jepsenlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

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
func RunTLSChange(ctx context.Context, o Options, how string) (_ *Report, err error) {
	if how != ByReload && how != ByRestart {
		return nil, fmt.Errorf("jepsenlite: no way %q to change TLS: know %s and %s", how, ByReload, ByRestart)
	}
	cluster, err := o.newCluster(ClusterConfig{Direct: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	ca, err := newAuthority()
	if err != nil {
		return nil, err
	}
	c := &tlsChange{cluster: cluster, ca: ca, how: how}
	for _, m := range cluster.Members {
		if err := errors.Join(ca.issue(m), ca.trust(m), c.configure(m, plainStep)); err != nil {
			return nil, err
		}
	}
	report := &Report{Server: o.Product.Name, Seed: o.Seed, Faults: map[string]int{}}
	began := time.Now()
	more := func() bool { return time.Since(began) < o.Time }
	run := func(r *round) (*roundResult, error) { return c.round(ctx, r) }
	report.Anomalies, err = o.rounds(cluster, loads(), more, run, func(_ *round, res *roundResult) []Anomaly {
		before := report.ConnsLost
		report.count(res, time.Since(began))
		return c.judge(report, report.ConnsLost-before)
	})
	return report.leave(o.Dir), err
}

// The steps of a round.
var (
	there = []tlsStep{acceptStep, dialStep, requiredStep}
	back  = []tlsStep{dialStep, acceptStep, plainStep}
)

// tlsChange is a run of RunTLSChange.
type tlsChange struct {
	cluster *Cluster
	ca      *authority
	how     string
}

// configure writes the zoo.cfg of a member at a step.
func (c *tlsChange) configure(m *Member, s tlsStep) error {
	text := fmt.Sprintf("%s%sssl.quorum.keyStore.location=%s\nssl.quorum.trustStore.location=%s\ngozkd.peer.tlsEnsemble=jepsen\n",
		c.cluster.zooCfg(m.ID), s.config, m.keyStore(), m.trustStore())
	return replaceFile(filepath.Join(m.dir, "zoo.cfg"), []byte(text))
}

// round takes all steps there and back under load.
func (c *tlsChange) round(ctx context.Context, r *round) (*roundResult, error) {
	return r.underTraffic(ctx, func(_ *Traffic, res *roundResult) error {
		err := pause(ctx, warm)
		for _, s := range slices.Concat(there, back) {
			for _, m := range r.cluster.Members {
				if err == nil {
					err = c.step(ctx, m, s)
				}
			}
			if err == nil {
				err = c.awaitLinks(ctx, s)
			}
			r.log.Info("step", "name", s.name, "error", err)
			res.faults["TLS step"]++
		}
		if err == nil {
			err = pause(ctx, afterwards)
		}
		return err
	})
}

// step takes a member to a step, with a new certificate.
func (c *tlsChange) step(ctx context.Context, m *Member, s tlsStep) error {
	if err := errors.Join(c.ca.issue(m), c.configure(m, s)); err != nil {
		return err
	}
	if c.how == ByReload {
		return errors.Join(m.process.Signal(syscall.SIGHUP), pause(ctx, time.Second))
	}
	if err := m.process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	<-m.process.Done()
	if err := c.cluster.Start(m); err != nil {
		return err
	}
	serving, cancel := context.WithTimeout(ctx, recovery)
	defer cancel()
	return errors.Join(c.cluster.AwaitServing(serving), pause(ctx, time.Second))
}

// awaitLinks returns when every link between members is what a step asks for.
func (c *tlsChange) awaitLinks(ctx context.Context, s tlsStep) error {
	ctx, cancel := context.WithTimeout(ctx, recovery)
	defer cancel()
	for {
		missing := ""
		for _, m := range c.cluster.Members {
			mntr, err := server.FourLetterWord(ctx, m.Client, "mntr")
			if err != nil {
				missing = err.Error()
				continue
			}
			for _, o := range c.cluster.Members {
				for _, key := range []string{"tls", "incoming_tls"} {
					if line := fmt.Sprintf("zk_gozkd_peer_%d_%s\t%s\n", o.ID, key, s.tls); o != m && !strings.Contains(mntr, line) {
						missing = fmt.Sprintf("%v does not say %q", m, line)
					}
				}
			}
		}
		if missing == "" {
			return nil
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("jepsenlite: step %s: %s: %w", s.name, missing, err)
		}
	}
}

// judge returns the violations during a change, besides those that every history is checked for.
func (c *tlsChange) judge(report *Report, connsLost int) (found []Anomaly) {
	if report.SessionsLost > 0 {
		found = append(found, Anomaly{Check: "tls-change", What: fmt.Sprintf("%d sessions were lost", report.SessionsLost)})
	}
	if c.how == ByReload && connsLost > 0 {
		found = append(found, Anomaly{Check: "tls-change", What: fmt.Sprintf("%d connections of clients were closed", connsLost)})
	}
	for _, m := range c.cluster.Members {
		log, err := os.ReadFile(m.LogPath())
		if err != nil {
			found = append(found, Anomaly{Check: "tls-change", What: err.Error()})
			continue
		}
		for _, bad := range []string{"connection from peer refused", "TLS handshake", "cannot be used", "not reloaded"} {
			if n := bytes.Count(log, []byte(bad)); n > 0 {
				found = append(found, Anomaly{Check: "tls-change", What: fmt.Sprintf("the log of %v has %d lines with %q", m, n, bad)})
			}
		}
	}
	return found
}
