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

// The rows of resident.
const (
	residentEmpty    = "resident, empty"
	residentLoaded   = "resident, under load with few znodes"
	residentSessions = "resident, idle sessions"
	residentZnodes   = "resident, many znodes"
)

// residentRows is the load with few znodes: rows that grow the tree are left out.
var residentRows = []string{"get 100 B", "set 100 B", "create and delete", "mixed: 50% get, 50% set"}

const residentQuiet = 5 * time.Second // a new server's time to settle

// benchResident measures the resident memory of new servers: empty, after load, with sessions, with
// znodes. Collectors get no extra time to give memory back.
func benchResident(ctx context.Context, s *settings) {
	var list []reading
	for _, k := range s.servers {
		for _, part := range []struct {
			row string
			do  func(ctx context.Context, p *server.Process)
		}{
			{residentLoaded, func(_ context.Context, p *server.Process) { loadWithFew(p, s.seconds) }},
			{residentSessions, func(ctx context.Context, p *server.Process) {
				crowd.Open(ctx, []string{p.Addr()}, s.sessions, 0, false).Await(ctx)
			}},
			{residentZnodes, func(ctx context.Context, p *server.Process) { fillMany(ctx, p.Addr(), s.znodes, payload) }},
		} {
			s.out.attempt(ctx, part.row, k.Name, func() {
				more := residentOf(ctx, k, part.row, part.do)
				if part.row != residentLoaded {
					more = more[2:] // the empty server is reported once
				}
				for _, r := range more {
					progress("%s: %s: %s %s", r.Row, r.Server, number(r.Value.Median), r.What)
				}
				list = append(list, more...)
			})
		}
	}
	s.out.report("resident", fmt.Sprintf("Resident memory at once, in MB of 10^6 bytes; %s sessions, %s znodes",
		thousands(float64(s.sessions)), thousands(float64(s.znodes))), list)
}

// residentOf starts a server and measures it empty and after do, whose ctx ends afterwards.
func residentOf(ctx context.Context, k server.Kind, row string, do func(context.Context, *server.Process)) (list []reading) {
	note := func(p *server.Process, when string, m memory) {
		list = append(list, reading{when, "RSS MB", p.Name(), once(float64(m.rss) / 1e6)},
			reading{when, "peak MB", p.Name(), once(float64(m.peak) / 1e6)})
	}
	with(ctx, k, server.Options{Keys: keys()}, func(p *server.Process) {
		must.Sleep(ctx, residentQuiet)
		note(p, residentEmpty, memoryOf(p.Pid()))
		ctx, end := context.WithCancel(ctx)
		defer end()
		do(ctx, p)
		note(p, row, memoryOf(p.Pid()))
	})
	return list
}

// loadWithFew runs each of residentRows for a while.
func loadWithFew(p *server.Process, each time.Duration) {
	prepare(p.Addr())
	for _, name := range residentRows {
		for _, sh := range []shape{{100, 1}, {16, 16}} {
			runOnce(target{addrs: []string{p.Addr()}}, sh, workloadNamed(name), each)
		}
	}
}
