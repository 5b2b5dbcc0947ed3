//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

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
func benchResident(ctx context.Context, s *settings) error {
	var lines []memoryLine
	for _, k := range s.servers {
		for _, part := range []struct {
			row string
			do  func(p *server.Process) (done func() error, err error)
		}{
			{residentLoaded, func(p *server.Process) (func() error, error) { return nothingToDo, loadWithFew(p, s.seconds) }},
			{residentSessions, func(p *server.Process) (func() error, error) { return idleSessions(p.Addr(), s.sessions) }},
			{residentZnodes, func(p *server.Process) (func() error, error) {
				return nothingToDo, fillMany(ctx, p.Addr(), s.znodes, payload)
			}},
		} {
			more, err := residentOf(ctx, k, part.row, part.do)
			if err != nil {
				if err := s.out.fail(ctx, part.row, k.name, err); err != nil {
					return err
				}
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
		return nil // all failed
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
	return s.out.readings("resident", memoryReadings(lines))
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

func nothingToDo() error { return nil }

// residentOf starts a server and measures it empty and after do. The function that do returns
// cleans up.
func residentOf(ctx context.Context, k kind, row string, do func(p *server.Process) (func() error, error)) (lines []memoryLine, err error) {
	p, err := k.start(ctx, server.Options{Keys: keys()})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	if !sleep(ctx, residentQuiet) {
		return nil, ctx.Err()
	}
	before, err := memoryOf(p.Pid())
	if err != nil {
		return nil, err
	}
	done, err := do(p)
	if err != nil {
		return nil, err
	}
	after, err := memoryOf(p.Pid())
	return []memoryLine{{p.Name(), residentEmpty, before}, {p.Name(), row, after}},
		errors.Join(err, done())
}

// loadWithFew runs each of residentRows for a while.
func loadWithFew(p *server.Process, each time.Duration) error {
	if err := prepare(p.Addr()); err != nil {
		return err
	}
	for _, name := range residentRows {
		for _, sh := range []shape{{100, 1}, {16, 16}} {
			if _, err := runOnce(target{addrs: []string{p.Addr()}}, sh, workloadNamed(name), each); err != nil {
				return err
			}
		}
	}
	return nil
}

// idleSessions opens sessions that send nothing. done closes their connections.
func idleSessions(addr string, n int) (done func() error, err error) {
	var clients []*client
	done = func() error {
		var err error
		for _, c := range clients {
			err = errors.Join(err, unix.Close(c.fd))
		}
		return err
	}
	for i := range n {
		c, err := dial(addr, i, 0)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("session %d: %w", i, err), done())
		}
		c.in, c.out = nil, nil
		clients = append(clients, c)
	}
	return done, nil
}
