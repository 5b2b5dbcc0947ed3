//go:build linux

package jepsenlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

const (
	// warm is how long clients work before the outage, cool how long after it, and after the first
	// write since it began.
	warm = time.Second
	cool = 1500 * time.Millisecond
)

// RunKills repeatedly strikes the leader with an outage, under pipelined load, and counts what the
// clients of the other members notice. Except for OutagePartition, links are direct, so the time is
// the ensemble's, not the proxies'. It ignores the options Time, Round and Faults.
func RunKills(ctx context.Context, o Options, kills int) (_ *KillReport, err error) {
	switch o.Outage {
	case OutageKill, OutagePause, OutagePartition:
	case OutageDiskHang:
		if err := canFreeze(); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("jepsenlite: no outage %q", o.Outage)
	}
	cluster, err := NewCluster(ClusterConfig{
		Product: o.Product, Members: o.Members, Dir: o.Dir, Tick: o.Tick, Direct: o.Outage != OutagePartition, LoopDisks: o.Outage == OutageDiskHang,
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	report := &KillReport{Server: o.Product.Name, Outage: o.Outage, Seed: o.Seed, Tick: o.Tick}
	rec := NewRecorder()
	for range kills {
		report.Kills++
		r := &round{number: report.Kills, seed: o.Seed, pace: o.Pace, cluster: cluster, loads: killLoads(o.Members), rec: rec, log: o.Logger}
		k, history, err := r.killOnce(ctx, o)
		if err != nil {
			return nil, errors.Join(err, WriteHistory(filepath.Join(o.Dir, "history.jsonl"), history))
		}
		anomalies := append(Check(history), CheckRegisters(history, o.Dir)...)
		if k.unrecovered != nil {
			anomalies = append(anomalies, Anomaly{Check: "recovery", What: k.unrecovered.Error()})
		}
		report.add(history, k)
		o.Logger.Info(o.Outage, "number", report.Kills, "member", k.member, "without_write", k.gap.Round(time.Millisecond), "closed", k.closed)
		if len(anomalies) > 0 {
			report.Anomalies, report.Left = anomalies, o.Dir
			return report, WriteHistory(filepath.Join(o.Dir, "history.jsonl"), history)
		}
	}
	return report, nil
}

// killLoads returns the loads of RunKills, each with at least a client per member.
func killLoads(members int) []load {
	return []load{
		{name: loadPipeline, workers: 2 * members, run: runPipeline},
		{name: loadRegister, workers: members, run: runRegister},
		{name: loadSet, workers: members, run: runSet, settle: settleSet},
		{name: loadWatch, workers: members, run: runWatch, settle: settleWatch},
	}
}

// A kill holds the result of a kill.
type kill struct {
	member      int
	at          time.Duration // since the start of the run
	gap         time.Duration // longest time without a successful write since
	closed      int           // connections to other members that were open at the kill and ended
	refused     int           // later ones that such a member closed
	lost        int           // sessions
	unrecovered error
}

// strike begins an outage of the leader and returns the function that ends it.
func (r *round) strike(outage string, leader *Member) (heal func() error, err error) {
	switch outage {
	case OutagePause:
		return leader.Resume, leader.Pause()
	case OutageDiskHang:
		return leader.ThawDisk, leader.FreezeDisk()
	case OutagePartition:
		for _, o := range r.cluster.Members {
			if o != leader {
				r.cluster.Links.Block(leader.ID, o.ID)
				r.cluster.Links.Block(o.ID, leader.ID)
			}
		}
		return func() error { r.cluster.Links.Heal(); return nil }, nil
	}
	return func() error { return nil }, r.cluster.Kill(leader)
}

// killOnce starts stopped members, applies load, and strikes the leader.
func (r *round) killOnce(ctx context.Context, o Options) (kill, []*Record, error) {
	var k kill
	serving, cancel := context.WithTimeout(ctx, recovery)
	defer cancel()
	if err := r.cluster.StartAll(serving); err != nil {
		k.unrecovered = err
		return k, nil, nil
	}
	t, err := StartTraffic(ctx, serving, r.traffic())
	if err != nil {
		return k, r.rec.Take(), err
	}
	err = pause(ctx, warm)
	leader := r.cluster.Leader(ctx)
	if err == nil && leader == nil {
		err = errors.New("jepsenlite: there is no leader to strike")
	}
	if err == nil {
		k.member, k.at = leader.ID, r.rec.Now()
		var heal func() error
		heal, err = r.strike(o.Outage, leader)
		if err == nil && o.Outage != OutageKill {
			err = pause(ctx, o.Hold)
		}
		err = errors.Join(err, heal())
	}
	if err == nil {
		err = r.awaitWrite(ctx, &k)
	}
	ended := r.rec.Now()
	stuckErr := t.End(false)
	if err == nil && k.unrecovered == nil {
		k.unrecovered = stuckErr
	}
	if err == nil && k.unrecovered == nil {
		again, cancel := context.WithTimeout(ctx, recovery)
		defer cancel()
		k.unrecovered = errors.Join(r.cluster.StartAll(again), r.lookAtAll(t))
	}
	history := r.rec.Take()
	k.judge(history, ended)
	return k, history, err
}

// awaitWrite returns some time after the success of a write sent after the kill.
func (r *round) awaitWrite(ctx context.Context, k *kill) error {
	waiting, cancel := context.WithTimeout(ctx, recovery)
	defer cancel()
	for r.rec.LastWrite() <= k.at {
		if pause(waiting, 10*time.Millisecond) != nil {
			k.unrecovered = fmt.Errorf("jepsenlite: no write succeeds since the outage of member %d", k.member)
			return ctx.Err()
		}
	}
	return pause(ctx, cool)
}

// judge evaluates the history of a kill; ended is when the clients were stopped.
func (k *kill) judge(history []*Record, ended time.Duration) {
	k.gap, _ = longestGap(history, k.at, ended)
	opened := map[int]time.Duration{} // by connection
	for _, r := range history {
		switch {
		case r.Kind == KindOpen && r.Refused:
			k.lost++
		case r.Kind == KindOpen:
			opened[r.Conn] = r.Return
		case r.Kind == KindClose && r.Why != WhyClient && r.Member != k.member && r.Return < ended:
			if at, was := opened[r.Conn]; was && at < k.at {
				k.closed++
			} else {
				k.refused++
			}
		}
	}
}

func (r *KillReport) add(history []*Record, k kill) {
	for _, h := range history {
		switch {
		case h.Answered():
			r.Answered++
		case h.Kind == KindReply:
			r.Unanswered++
		}
	}
	r.Gaps = append(r.Gaps, k.gap)
	r.Closed += k.closed
	r.Refused += k.refused
	r.SessionsLost += k.lost
}
