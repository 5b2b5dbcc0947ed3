//go:build linux

package jepsenlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	cluster, err := NewCluster(ClusterConfig{Product: o.Product, Members: o.Members, Dir: o.Dir, Tick: o.Tick, Direct: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	ca, err := newAuthority()
	if err != nil {
		return nil, err
	}
	c := &tlsChange{cluster: cluster, ca: ca, how: how, options: o, began: time.Now()}
	for _, m := range cluster.Members {
		if err := errors.Join(ca.issue(m), ca.trust(m), c.configure(m, plainStep)); err != nil {
			return nil, err
		}
	}
	report := &Report{Server: o.Product.Name, Seed: o.Seed, Faults: map[string]int{}}
	rec := NewRecorder()
	for report.Rounds == 0 || time.Since(c.began) < o.Time {
		report.Rounds++
		r := &round{number: report.Rounds, seed: o.Seed, pace: o.Pace, cluster: cluster, loads: loads(), rec: rec, log: o.Logger}
		res, err := c.round(ctx, r)
		if err != nil {
			return nil, errors.Join(err, WriteHistory(filepath.Join(o.Dir, "history.jsonl"), rec.Take()))
		}
		report.Took = time.Since(c.began)
		before := report.ConnsLost
		report.add(res.history, res.began, res.ended)
		report.Faults["TLS step"] += len(there) + len(back)
		anomalies := append(Check(res.history), CheckRegisters(res.history, o.Dir)...)
		anomalies = append(anomalies, c.judge(report, report.ConnsLost-before)...)
		if res.unrecovered != nil {
			anomalies = append(anomalies, Anomaly{Check: "recovery", What: res.unrecovered.Error()})
		}
		if len(anomalies) > 0 {
			report.Anomalies, report.Left = anomalies, o.Dir
			return report, WriteHistory(filepath.Join(o.Dir, "history.jsonl"), res.history)
		}
	}
	return report, nil
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
	options Options
	began   time.Time
}

// configure writes the zoo.cfg of a member at a step.
func (c *tlsChange) configure(m *Member, s tlsStep) error {
	text := fmt.Sprintf("%s%sssl.quorum.keyStore.location=%s\nssl.quorum.trustStore.location=%s\ngozkd.peer.tlsEnsemble=jepsen\n",
		c.cluster.zooCfg(m.ID), s.config, m.keyStore(), m.trustStore())
	return replaceFile(filepath.Join(m.dir, "zoo.cfg"), []byte(text))
}

// round takes all steps there and back under load.
func (c *tlsChange) round(ctx context.Context, r *round) (*roundResult, error) {
	res := &roundResult{faults: map[string]int{}}
	serving, cancel := context.WithTimeout(ctx, recovery)
	defer cancel()
	if err := r.cluster.StartAll(serving); err != nil {
		res.unrecovered = err
		return res, nil
	}
	traffic, err := StartTraffic(ctx, serving, r.traffic())
	if err != nil {
		return nil, err
	}
	res.began = r.rec.Now()
	err = pause(ctx, warm)
	for _, s := range append(there[:len(there):len(there)], back...) {
		for _, m := range r.cluster.Members {
			if err == nil {
				err = c.step(ctx, m, s)
			}
		}
		if err == nil {
			err = c.awaitLinks(ctx, s)
		}
		r.log.Info("step", "name", s.name, "error", err)
	}
	if err == nil {
		err = pause(ctx, afterwards)
	}
	res.ended = r.rec.Now()
	stuckErr := traffic.End(err == nil)
	if err == nil {
		res.unrecovered = stuckErr
	}
	if err == nil && stuckErr == nil {
		res.unrecovered = r.lookAtAll(traffic)
	}
	res.history = r.rec.Take()
	return res, err
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
