//go:build linux

package jepsenlite

import (
	"context"
	"errors"
	"fmt"
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
	cluster, err := o.newCluster(ClusterConfig{Direct: o.Outage != OutagePartition, LoopDisks: o.Outage == OutageDiskHang})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	report := &KillReport{Server: o.Product.Name, Outage: o.Outage, Seed: o.Seed, Tick: o.Tick}
	var k kill
	more := func() bool { return report.Kills < kills }
	run := func(r *round) (*roundResult, error) {
		report.Kills++
		k = kill{}
		return r.killOnce(ctx, o, &k)
	}
	report.Anomalies, err = o.rounds(cluster, killLoads(o.Members), more, run, func(_ *round, res *roundResult) []Anomaly {
		report.add(res.history, k)
		o.Logger.Info(o.Outage, "number", report.Kills, "member", k.member,
			"without_write", k.gap.Round(time.Millisecond), "closed", k.closed)
		return nil
	})
	if len(report.Anomalies) > 0 {
		report.Left = o.Dir
	}
	return report, err
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
	member  int
	at      time.Duration // since the start of the run
	gap     time.Duration // longest time without a successful write since
	closed  int           // connections to other members that were open at the kill and ended
	refused int           // later ones that such a member closed
	lost    int           // sessions
}

// strike begins an outage of the leader and returns the function that ends it.
func (r *round) strike(outage string, leader *Member) (heal func() error, err error) {
	switch outage {
	case OutagePause:
		return leader.Resume, leader.Pause()
	case OutageDiskHang:
		return leader.ThawDisk, leader.FreezeDisk()
	case OutagePartition:
		r.cluster.isolate(leader)
		return func() error { r.cluster.Links.Heal(); return nil }, nil
	}
	return func() error { return nil }, r.cluster.Kill(leader)
}

// killOnce strikes the leader under load.
func (r *round) killOnce(ctx context.Context, o Options, k *kill) (*roundResult, error) {
	r.struck = true
	res, err := r.underTraffic(ctx, func(_ *Traffic, res *roundResult) error {
		if err := pause(ctx, warm); err != nil {
			return err
		}
		leader := r.cluster.Leader(ctx)
		if leader == nil {
			return errors.New("jepsenlite: there is no leader to strike")
		}
		k.member, k.at = leader.ID, r.rec.Now()
		heal, err := r.strike(o.Outage, leader)
		if err == nil && o.Outage != OutageKill {
			err = pause(ctx, o.Hold)
		}
		if err = errors.Join(err, heal()); err != nil {
			return err
		}
		waiting, cancel := context.WithTimeout(ctx, recovery)
		defer cancel()
		for r.rec.LastWrite() <= k.at {
			if pause(waiting, 10*time.Millisecond) != nil {
				res.unrecovered = fmt.Errorf("jepsenlite: no write succeeds since the outage of member %d", k.member)
				return ctx.Err()
			}
		}
		return pause(ctx, cool)
	})
	k.judge(res.history, res.ended)
	return res, err
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
