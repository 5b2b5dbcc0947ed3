//go:build linux

package jepsenlite

import (
	"context"
	"fmt"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
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
func RunKills(ctx context.Context, o Options, kills int) (*Report, error) {
	switch o.Outage {
	case OutageKill, OutagePause, OutagePartition:
	case OutageDiskHang:
		if err := canFreeze(); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("jepsenlite: no outage %q", o.Outage)
	}
	outages := &Outages{Outage: o.Outage, Tick: o.Tick}
	var k kill
	return o.rounds(ClusterConfig{Direct: o.Outage != OutagePartition, LoopDisks: o.Outage == OutageDiskHang}, test{
		loads: killLoads(o.Members),
		more:  func(r *Report) bool { return r.Rounds < kills },
		run: func(r *round) (*roundResult, error) {
			k = kill{}
			return r.killOnce(ctx, o, &k)
		},
		judge: func(r *round, report *Report, _ *roundResult) {
			report.Outages = outages
			outages.Gaps = append(outages.Gaps, k.gap)
			outages.Closed += k.closed
			outages.Refused += k.refused
			o.Logger.Info(o.Outage, "number", r.number, "member", k.member, "without_write", k.gap.Round(time.Millisecond), "closed", k.closed)
		},
	})
}

// killLoads returns the loads of RunKills, each with at least a client per member.
func killLoads(members int) []load {
	return []load{
		{name: loadPipeline, workers: 2 * members, run: runPipeline},
		{name: loadRegister, workers: members, run: runRegister},
		{name: loadSet, workers: members, run: runSet, settle: settleList},
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
}

// strike begins an outage of the leader and returns the function that ends it.
func (r *round) strike(outage string, leader *Member) (heal func()) {
	switch outage {
	case OutagePause:
		leader.Pause()
		return leader.Resume
	case OutageDiskHang:
		leader.FreezeDisk()
		return leader.ThawDisk
	case OutagePartition:
		r.cluster.isolate(leader)
		return r.cluster.Links.Heal
	}
	r.cluster.Kill(leader)
	return func() {}
}

// killOnce strikes the leader under load.
func (r *round) killOnce(ctx context.Context, o Options, k *kill) (*roundResult, error) {
	r.struck = true
	res, err := r.underTraffic(ctx, func(_ *Traffic, res *roundResult) {
		must.Sleep(ctx, warm)
		leader := r.cluster.Leader(ctx)
		if leader == nil {
			must.Failf("there is no leader to strike")
		}
		k.member, k.at = leader.ID, r.rec.Now()
		heal := r.strike(o.Outage, leader)
		if o.Outage != OutageKill {
			_ = pause(ctx, o.Hold) // cut short by the end of the test
		}
		heal()
		waiting, cancel := context.WithTimeout(ctx, recovery)
		defer cancel()
		for r.rec.LastWrite() <= k.at {
			if pause(waiting, 10*time.Millisecond) != nil {
				res.unrecovered = fmt.Errorf("jepsenlite: no write succeeds since the outage of member %d", k.member)
				must.Do(ctx.Err())
				return
			}
		}
		must.Sleep(ctx, cool)
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
		case r.Kind == KindOpen && !r.Refused:
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
