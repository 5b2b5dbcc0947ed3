//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
	"github.com/gozkd/gozkd/test/crowd"
)

// benchCrowd measures what sessions with watches cost, while they connect, idle, and all come back
// because their server was killed and started, and how long a lone client's requests take beside.
func benchCrowd(ctx context.Context, s *settings) {
	var list []reading
	for _, k := range s.servers {
		s.out.attempt(ctx, "crowd", k.Name, func() { list = append(list, crowdOf(ctx, s, k)...) })
	}
	s.out.report("crowd", fmt.Sprintf("%s sessions with %d watches each", thousands(float64(s.sessions)), s.watches), list)
}

func crowdOf(ctx context.Context, s *settings, k server.Kind) (list []reading) {
	e := must.Get(k.StartEnsemble(ctx, server.EnsembleOptions{Members: 1, Keys: keys()}))
	defer must.Finally(e.Stop)
	prepareAll(e.Addrs())
	m := e.Members[0]
	note := func(row, what string, v float64) {
		progress("%s, %s: %.4g", row, what, v)
		list = append(list, reading{row, what, e.Name(), once(v)})
	}
	empty, spent := memoryOf(m.Pid()).rss, cpuOfOne(m.Pid())
	ctx, end := context.WithCancel(ctx)
	defer end()
	c := crowd.Open(ctx, e.Addrs(), s.sessions, s.watches, false)
	observe := func(row string, took time.Duration, ended int) {
		note(row, "s", took.Seconds())
		note(row, "sessions that ended", float64(ended))
		note(row, "CPU µs per session", float64((cpuOfOne(m.Pid())-spent).Microseconds())/float64(s.sessions))
		note(row, "resident, KiB per session", float64(memoryOf(m.Pid()).rss-empty)/1024/float64(s.sessions))
		for _, name := range []string{"get 100 B", "set 100 B"} {
			r := runOnce(target{addrs: e.Addrs()}, shape{1, 1}, workloadNamed(name), s.seconds)
			note(row, name+", p50 µs", float64(r.latencies.quantile(.5))/1e3)
			note(row, name+", p99 µs", float64(r.latencies.quantile(.99))/1e3)
		}
		spent = cpuOfOne(m.Pid())
	}
	took, ended := c.Await(ctx)
	observe("connecting", took, ended)
	must.Sleep(ctx, 4*s.seconds)
	observe("idle", 4*s.seconds, ended)
	must.Do(m.Kill())
	m.Start()
	spent = 0
	took, ended = c.Await(ctx)
	observe("restart", took, ended)
	return list
}
