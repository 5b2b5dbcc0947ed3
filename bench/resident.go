//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
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
	var lines []memoryLine
	for _, k := range s.servers {
		for _, part := range []struct {
			row string
			do  func(p *server.Process) (opened []*client)
		}{
			{residentLoaded, func(p *server.Process) []*client { loadWithFew(p, s.seconds); return nil }},
			{residentSessions, func(p *server.Process) []*client { return openIdle(ctx, p.Addr(), s.sessions, 1) }},
			{residentZnodes, func(p *server.Process) []*client { fillMany(ctx, p.Addr(), s.znodes, payload); return nil }},
		} {
			var more []memoryLine
			if !s.out.attempt(ctx, part.row, k.Name, func() { more = residentOf(ctx, k, part.row, part.do) }) {
				continue
			}
			if part.row != residentLoaded {
				more = more[1:] // the empty server is reported once
			}
			for _, l := range more {
				progress("%s: %s: %s MB, peak %s MB", l.when, l.server, number(float64(l.memory.rss)/1e6), number(float64(l.memory.peak)/1e6))
			}
			lines = append(lines, more...)
		}
	}
	if lines == nil {
		return // all failed
	}
	var table [][]string
	for _, l := range lines {
		first := lines[0].server
		of := func(bytes func(memory) int64) string {
			for _, o := range lines {
				if l.server == first && o.when == l.when && o.server != first {
					return fmt.Sprintf("%.2f", float64(bytes(l.memory))/float64(bytes(o.memory)))
				}
			}
			return ""
		}
		rss, peak := func(m memory) int64 { return m.rss }, func(m memory) int64 { return m.peak }
		table = append(table, []string{l.when, l.server, number(float64(l.memory.rss) / 1e6), of(rss), number(float64(l.memory.peak) / 1e6), of(peak)})
	}
	s.out.table(fmt.Sprintf("Resident memory at once, in MB of 10^6 bytes; %s sessions, %s znodes", thousands(float64(s.sessions)), thousands(float64(s.znodes))),
		[]string{"what", "server", "at the end", "ratio", "at the peak", "ratio"}, table)
	must.Do(s.out.readings("resident", memoryReadings(lines)))
}

// memoryLine is a server's memory in a state.
type memoryLine struct {
	server, when string
	memory       memory
}

func memoryReadings(lines []memoryLine) (list []reading) {
	for _, l := range lines {
		list = append(list, reading{l.when, "RSS MB", l.server, once(float64(l.memory.rss) / 1e6)},
			reading{l.when, "peak MB", l.server, once(float64(l.memory.peak) / 1e6)})
	}
	return list
}

// residentOf starts a server and measures it empty and after do, which may return open sessions.
func residentOf(ctx context.Context, k kind, row string, do func(p *server.Process) []*client) (lines []memoryLine) {
	k.with(ctx, server.Options{Keys: keys()}, func(p *server.Process) {
		must.Sleep(ctx, residentQuiet)
		before := memoryOf(p.Pid())
		opened := do(p)
		defer must.Finally(func() error { return closeIdle(opened) })
		lines = []memoryLine{{p.Name(), residentEmpty, before}, {p.Name(), row, memoryOf(p.Pid())}}
	})
	return lines
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

// openIdle opens n sessions that hold nothing but their sockets, openers at a time.
func openIdle(ctx context.Context, addr string, n, openers int) []*client {
	opened := make([][]*client, openers)
	var works []func()
	for o := range openers {
		works = append(works, func() {
			for i := o; i < n; i += openers {
				must.Do(ctx.Err())
				c := must.Get(dial(addr, i, 1))
				c.in, c.out = make([]byte, 256), nil
				c.r, c.w = 0, 0
				opened[o] = append(opened[o], c)
			}
		})
	}
	err := must.Try(func() { must.All(works...) })
	all := slices.Concat(opened...)
	if err != nil {
		must.Do(errors.Join(err, closeIdle(all)))
	}
	return all
}

// closeIdle closes the sockets; the sessions stay.
func closeIdle(clients []*client) (err error) {
	for _, c := range clients {
		err = errors.Join(err, unix.Close(c.fd))
	}
	return err
}
