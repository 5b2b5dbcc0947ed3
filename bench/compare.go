//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"
)

// comparePart is a command of compare, with what it changes in the settings.
type comparePart struct {
	name   string
	run    func(context.Context, *settings) error
	change func(*settings)
}

// compareParts are the commands whose figures the goals need, and what else belongs beside them.
func compareParts() []comparePart {
	asTold := func(*settings) {}
	return []comparePart{
		{"limits", benchLimits, asTold},
		{"start", benchStart, asTold},
		{"latency", benchLatency, asTold},
		{"throughput", benchThroughput, asTold},
		{"connects", benchConnects, asTold},
		{"watches", benchWatches, asTold},
		{"resident", benchResident, asTold},
		{"ensemble", benchEnsemble, asTold},
		{"failover", benchFailover, asTold},
		{"calm", benchCalm, asTold},
		{"recipes", benchRecipes, func(s *settings) { s.rows, s.warm = "handover", min(s.warm, 4*time.Second) }},
		{"targets", benchTargets, asTold},
	}
}

// compareDefaults are flags that compare sets unless they are given: rounds short enough that all of it takes three quarters of an hour.
var compareDefaults = map[string]string{"time": "2s", "kills": "5", "ticks": "2000", "starts": "10", "out": "docs/benchmarks"}

// setCompareDefaults sets them.
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

// benchCompare runs all parts. It says on standard error how long each took, and all together.
func benchCompare(ctx context.Context, s *settings, args []string) error {
	start := time.Now()
	for _, part := range compareParts() {
		began := time.Now()
		settings := *s
		part.change(&settings)
		if err := s.out.begin(part.name, args); err != nil {
			return err
		}
		if err := part.run(ctx, &settings); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		progress("compare: %s took %s, %s since the start", part.name, time.Since(began).Round(time.Second), time.Since(start).Round(time.Second))
	}
	return nil
}
