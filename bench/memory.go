//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozkd/gozkd/test/compat/server"
)

var memoryHead = []string{"server", "when", "RSS MiB", "of it anonymous", "file", "peak", "bytes each"}

// traceCollections makes the Go runtime of the servers started from now on log its collections; this process's own was
// started without.
func traceCollections() error { return os.Setenv("GODEBUG", "gctrace=1") }

// benchSessions opens idle sessions, a connection each, and looks at the server's resident memory before and after.
func benchSessions(ctx context.Context, s *settings) error {
	if err := traceCollections(); err != nil {
		return err
	}
	var all []memoryLine
	for _, k := range s.servers {
		rows, err := sessionsOf(ctx, k, s.sessions)
		if err != nil {
			return err
		}
		all = append(all, rows...)
	}
	s.out.table(fmt.Sprintf("%s idle sessions", thousands(float64(s.sessions))), memoryHead, memoryTable(all))
	return s.out.readings("sessions", memoryReadings(all))
}

func sessionsOf(ctx context.Context, k kind, n int) (lines []memoryLine, err error) {
	p, err := k.start(ctx, server.Options{Keys: keys()})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	progress("sessions: %s started, settling", p.Name())
	before, err := k.settle(ctx, p)
	if err != nil {
		return nil, err
	}
	clients := make([]*client, 0, n)
	defer func() {
		for _, c := range clients {
			err = errors.Join(err, unix.Close(c.fd))
		}
	}()
	for i := range n {
		c, err := dial(p.Addr(), i, 0)
		if err != nil {
			return nil, fmt.Errorf("session %d: %w", i, err)
		}
		c.in, c.out = nil, nil
		clients = append(clients, c)
	}
	progress("sessions: %s has them, settling", p.Name())
	return afterwards(ctx, k, p, before, "without sessions", n, 0)
}

// benchZnodes fills servers with znodes and looks at their resident memory.
func benchZnodes(ctx context.Context, s *settings) error {
	if err := traceCollections(); err != nil {
		return err
	}
	var all []memoryLine
	for _, k := range s.servers {
		for _, inMemory := range []bool{false, true} {
			if inMemory && !k.memory {
				continue
			}
			rows, err := znodesOf(ctx, k, s.znodes, inMemory)
			if err != nil {
				return err
			}
			all = append(all, rows...)
		}
	}
	s.out.table(fmt.Sprintf("%s znodes of %d bytes; \"bytes each\" is beyond these", thousands(float64(s.znodes)), dataBytes), memoryHead, memoryTable(all))
	return s.out.readings("znodes", memoryReadings(all))
}

const perParent = 1000

func znodesOf(ctx context.Context, k kind, n int, inMemory bool) (lines []memoryLine, err error) {
	opts := server.Options{Keys: keys(), Memory: inMemory}
	if !inMemory {
		if opts.DataDir, err = os.MkdirTemp("", "gozkd-bench-data-"); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(opts.DataDir)) }()
	}
	p, err := k.start(ctx, opts)
	if err != nil {
		return nil, err
	}
	stop := func() error { return p.Stop() }
	defer func() { err = errors.Join(err, stop()) }()
	progress("znodes: %s started, settling", p.Name())
	before, err := k.settle(ctx, p)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if err := fillMany(ctx, p.Addr(), n, payload); err != nil {
		return nil, err
	}
	progress("znodes: %s created them in %s, settling", p.Name(), time.Since(start))
	label := "empty"
	if inMemory {
		label = "empty, in memory"
	}
	if lines, err = afterwards(ctx, k, p, before, label, n, dataBytes); err != nil || inMemory {
		return lines, err
	}
	stop = func() error { return nil }
	if err := p.Stop(); err != nil {
		return nil, err
	}
	start = time.Now()
	if p, err = k.start(ctx, opts); err != nil {
		return nil, err
	}
	stop = func() error { return p.Stop() }
	progress("znodes: %s started again in %s", p.Name(), time.Since(start))
	restarted, err := k.settle(ctx, p)
	if err != nil {
		return nil, err
	}
	return append(lines, memoryRow(p.Name(), "started again, settled", restarted, before, n, dataBytes)), nil
}

// afterwards looks at once and when the server has settled. before is without the n things, label says so.
func afterwards(ctx context.Context, k kind, p *server.Process, before memory, label string, n, beyond int) ([]memoryLine, error) {
	atOnce, err := memoryOf(p.Pid())
	if err != nil {
		return nil, err
	}
	settled, err := k.settle(ctx, p)
	if err != nil {
		return nil, err
	}
	return []memoryLine{
		memoryRow(p.Name(), label, before, before, 0, 0),
		memoryRow(p.Name(), "at once", atOnce, before, n, beyond),
		memoryRow(p.Name(), "settled", settled, before, n, beyond),
	}, nil
}

// memoryLine is one server's memory at one moment.
type memoryLine struct {
	server, when string
	memory       memory
	things       int     // sessions or znodes that it has; 0: it is empty
	each         float64 // bytes more than before for each of them, beyond the bytes that each must take
}

// memoryRow says how much more m is than before, for each of n things, beyond the bytes that each must take.
func memoryRow(name, when string, m, before memory, n, beyond int) memoryLine {
	line := memoryLine{server: name, when: when, memory: m, things: n}
	if n > 0 {
		line.each = float64(m.rss-before.rss)/float64(n) - float64(beyond)
	}
	return line
}

func memoryTable(lines []memoryLine) (table [][]string) {
	for _, l := range lines {
		each := ""
		if l.things > 0 {
			each = thousands(l.each)
		}
		m := l.memory
		table = append(table, []string{l.server, l.when, mib(m.rss), mib(m.anon), mib(m.file), mib(m.peak), each})
	}
	return table
}

func memoryReadings(lines []memoryLine) (list []reading) {
	for _, l := range lines {
		list = append(list, reading{l.when, "RSS MB", l.server, once(float64(l.memory.rss) / 1e6)},
			reading{l.when, "peak MB", l.server, once(float64(l.memory.peak) / 1e6)})
		if l.things > 0 {
			list = append(list, reading{l.when, "bytes each", l.server, once(l.each)})
		}
	}
	return list
}
