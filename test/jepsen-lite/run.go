//go:build linux

package jepsenlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// Options configure a run.
type Options struct {
	Product Product
	Members int
	Dir     string        // for data, logs and the files of a failure; the caller owns it
	Time    time.Duration // no round begins after it
	Round   time.Duration // duration of faults in each round
	Seed    uint64        // of the choice of faults and operations
	Faults  []string      // kinds that may happen; nil: all that the machine and the product allow
	Pace    time.Duration // mean time between two operations of a client
	Tick    time.Duration // tickTime, from which timeouts follow
	// The round trip between members, and how many percent of the packets are lost, besides faults.
	RoundTrip   time.Duration
	LossPercent float64
	Kills       int // rounds go on until KillBurst has killed the server this many times, too
	Logger      hclog.Logger
}

// Run tests an ensemble, round after round, until the time has passed or a round has an anomaly. An
// error means that the test could not run; anomalies are in the report. The history of a round that
// failed or has anomalies is written to Dir.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	kinds, err := chooseFaults(o)
	if err != nil {
		return nil, err
	}
	has := func(is func(f fault) bool) bool { return slices.ContainsFunc(kinds, is) }
	cfg := ClusterConfig{
		Options:   o,
		SmallDisk: has(func(f fault) bool { return f.small }),
		LoopDisks: has(func(f fault) bool { return f.loop }),
		Burst:     has(func(f fault) bool { return f.alone }),
	}
	err = must.Try(func() {
		cluster := NewCluster(cfg)
		defer must.Finally(cluster.Close)
		report = &Report{Server: o.Product.Name, Seed: o.Seed, Faults: map[string]int{}}
		file, rec, began := filepath.Join(o.Dir, "history.jsonl"), NewRecorder(), time.Now()
		for n := 1; n == 1 || len(report.Anomalies) == 0 && (report.Took < o.Time || report.bursts() < o.Kills); n++ {
			o.Logger.Info("round", "number", n)
			r := &round{Options: o, number: n, cluster: cluster, faults: kinds, rec: rec}
			res, err := r.run(ctx)
			if err != nil {
				must.Do(errors.Join(err, WriteHistory(file, append(res.history, rec.Take()...))))
			}
			report.count(res, time.Since(began))
			report.Anomalies = slices.Concat(Check(res.history), CheckRegisters(res.history, o.Dir))
			gap, at := longestGap(res.history, res.began, res.ended)
			o.Logger.Info("round ended", "number", n, "records", len(res.history),
				"without_write", gap.Round(time.Millisecond), "since", rec.start.Add(at).UTC().Format("15:04:05.000"))
			if res.unrecovered != nil {
				report.Anomalies = append(report.Anomalies, Anomaly{Check: "recovery", What: res.unrecovered.Error()})
			}
			if len(report.Anomalies) > 0 {
				report.Left = o.Dir
				must.Do(WriteHistory(file, res.history))
			}
		}
	})
	return report, err
}

// chooseFaults returns the kinds of faults that may happen.
func chooseFaults(o Options) ([]fault, error) {
	known := map[string]fault{}
	var chosen []fault
	noFreeze := canFreeze()
	impossible := func(f fault) error {
		switch {
		case f.previous && o.Product.Previous == nil:
			return errors.New("no previous version is named")
		case f.alone && o.Members > 1:
			return fmt.Errorf("only for a lone server, not %d members", o.Members)
		case f.loop:
			return noFreeze
		}
		return nil
	}
	for _, f := range faults() {
		known[f.name] = f
		if o.Faults != nil || f.small && os.Getuid() != 0 || f.strict && o.Product.Name != Gozkd {
			continue
		}
		if err := impossible(f); err != nil {
			o.Logger.Info("a fault is left out", "kind", f.name, "reason", err)
		} else {
			chosen = append(chosen, f)
		}
	}
	for _, name := range o.Faults {
		f, ok := known[name]
		if !ok {
			return nil, fmt.Errorf("jepsenlite: no fault %q", name)
		}
		if err := impossible(f); err != nil {
			return nil, fmt.Errorf("jepsenlite: fault %q: %w", name, err)
		}
		chosen = append(chosen, f)
	}
	if o.Kills > 0 && !slices.ContainsFunc(chosen, func(f fault) bool { return f.name == KillBurst }) {
		return nil, fmt.Errorf("jepsenlite: %d kills of the fault %s, which is not among the faults", o.Kills, KillBurst)
	}
	return chosen, nil
}
