//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// comparePart is a command that compare runs, and how it changes the settings.
type comparePart struct {
	name   string
	run    func(context.Context, *settings)
	change func(*settings)
	// about estimates the duration of the command, from runs on two processors.
	about func(*settings) time.Duration
}

// compareParts lists the commands whose figures the goals need.
func compareParts() []comparePart {
	asTold := func(*settings) {}
	// rounds estimates the duration of this many rows at all shapes, unmeasured work included.
	rounds := func(s *settings, rows int) time.Duration {
		servers := time.Duration(len(s.servers))
		return time.Duration(rows) * servers * (s.warm + time.Duration(len(s.shapes)*s.rounds)*s.seconds) * 11 / 10
	}
	// filled estimates what depends on the number of znodes; ZooKeeper takes twice as long as
	// gozkd.
	filled := func(s *settings, each time.Duration) time.Duration {
		return each * time.Duration(len(s.servers)*s.znodes) / 1_000_000
	}
	servers := func(s *settings, each time.Duration) time.Duration { return each * time.Duration(len(s.servers)) }
	return []comparePart{
		{"limits", benchLimits, asTold, func(s *settings) time.Duration {
			return 15*time.Second + 3*time.Duration(len(s.shapes)*s.rounds)*s.seconds
		}},
		{"start", benchStart, asTold, func(s *settings) time.Duration { return servers(s, 10*time.Second) + filled(s, 50*time.Second) }},
		{"throughput", benchThroughput, asTold, func(s *settings) time.Duration { return rounds(s, len(workloads())) }},
		{"connects", benchConnects, asTold, func(s *settings) time.Duration { return servers(s, s.warm+time.Duration(s.rounds)*s.seconds) }},
		{"watches", benchWatches, asTold, func(s *settings) time.Duration { return servers(s, 3*s.warm+60*time.Second) }},
		{"resident", benchResident, asTold, func(s *settings) time.Duration {
			return servers(s, 25*time.Second+8*s.seconds) + filled(s, 15*time.Second)
		}},
		{"ensemble", benchEnsemble, asTold, func(s *settings) time.Duration { return rounds(s, len(ensembleRows)) }},
		{"failover", benchFailover, asTold, func(s *settings) time.Duration {
			return servers(s, time.Duration(len(s.ticks)*s.kills)*6*time.Second)
		}},
		{"calm", benchCalm, func(s *settings) { s.rows = "" }, func(s *settings) time.Duration {
			return servers(s, 4*s.calm+50*time.Second) + filled(s, 30*time.Second)
		}},
		{"recipes", benchRecipes, func(s *settings) { s.rows, s.warm = "handover", min(s.warm, 4*time.Second) }, func(s *settings) time.Duration {
			return servers(s, 3*time.Duration(s.rounds)*(s.warm+s.seconds+time.Second))
		}},
		{"targets", benchTargets, asTold, func(*settings) time.Duration { return 0 }},
	}
}

// compareDefaults are the flags that compare sets unless they are given: short rounds, three
// quarters of an hour in all.
var compareDefaults = map[string]string{"time": "2s", "kills": "5", "ticks": "2000", "starts": "10", "out": ".cache/bench"}

func setCompareDefaults(flags *flag.FlagSet) error {
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	var err error
	for name, value := range compareDefaults {
		if !given[name] {
			err = errors.Join(err, flags.Set(name, value))
		}
	}
	return err
}

// benchCompare runs all parts, also after failures. It reports its plan and progress on
// standard error, and at the end what went wrong.
func benchCompare(ctx context.Context, s *settings, args []string) {
	start := time.Now()
	parts := compareParts()
	var left time.Duration
	progress("compare: what will be done, and about how long it takes")
	for i, part := range parts {
		about := part.about(part.settings(s))
		left += about
		progress("%4d %-12s %6s", i+1, part.name, about.Round(time.Second))
	}
	progress("compare: %s in all", left.Round(time.Second))
	var all error
	for i, part := range parts {
		began, settings := time.Now(), part.settings(s)
		progress("compare: %d of %d, %s; %s since the start, about %s left", i+1, len(parts), part.name, began.Sub(start).Round(time.Second), left.Round(time.Second))
		left -= part.about(settings)
		s.out.conditions = settings.conditions(s.out.conditions.Commit)
		err := s.out.begin(part.name, args)
		if err == nil {
			err = s.out.end(part.name, must.Try(func() { part.run(ctx, settings) }))
		}
		if ctx.Err() != nil {
			must.Do(errors.Join(ctx.Err(), err))
			return
		}
		all = errors.Join(all, err)
		progress("compare: %s took %s", part.name, time.Since(began).Round(time.Second))
	}
	progress("compare: %s in all", time.Since(start).Round(time.Second))
	must.Do(all)
}

func (p *comparePart) settings(s *settings) *settings {
	changed := *s
	p.change(&changed)
	return &changed
}
