//go:build linux

package main

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	zk "github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

// crowdLimit is how long all sessions may take to connect, or to come back after a restart.
const crowdLimit = 5 * time.Minute

// benchCrowd measures what sessions with watches cost, while they connect, idle, and all come back
// because their server was killed and started, and how long a lone client's requests take beside.
func benchCrowd(ctx context.Context, s *settings) {
	var list []reading
	for _, k := range s.servers {
		s.out.attempt(ctx, "crowd", k.Name, func() { list = append(list, crowdOf(ctx, s, k)...) })
	}
	s.out.report("crowd", fmt.Sprintf("%s sessions with %d watches each", thousands(float64(s.sessions)), s.watches), list)
}

func crowdOf(ctx context.Context, s *settings, k kind) (list []reading) {
	e := k.startEnsemble(ctx, server.EnsembleOptions{Members: 1, Keys: keys()})
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
	c := openCrowd(ctx, m.Addr(), s.sessions, s.watches)
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
	took, ended := c.await(ctx)
	observe("connecting", took, ended)
	must.Sleep(ctx, 4*s.seconds)
	observe("idle", 4*s.seconds, ended)
	must.Do(m.Kill())
	m.Start()
	spent = 0
	took, ended = c.await(ctx)
	observe("restart", took, ended)
	return list
}

// crowd is sessions of our client, which pings and, after a lost connection, comes back.
type crowd []atomic.Pointer[zk.Client]

// openCrowd begins to open sessions, each with watches of znodes that do not exist. The sessions'
// connections end with ctx.
func openCrowd(ctx context.Context, addr string, sessions, watches int) crowd {
	c := make(crowd, sessions)
	opening := make(chan struct{}, connectors[0])
	for i := range c {
		// With more than some 14,000 connections from one address to a port, Linux takes long to
		// find a free port for the next.
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, byte(i/1000/250)+1, byte(i/1000%250))}}
		cfg := zk.Config{Servers: []string{addr}, Dial: func(ctx context.Context, address string) (net.Conn, error) {
			return from.DialContext(ctx, "tcp", address)
		}}
		// Ends when the session is open or with ctx; awaited by nobody, but await sees the session.
		go func() {
			opening <- struct{}{}
			defer func() { <-opening }()
			backoff.Retry(ctx, func() (done bool) {
				z, err := zk.Connect(ctx, cfg)
				if err != nil {
					return false
				}
				context.AfterFunc(ctx, z.Detach)
				for w := 0; err == nil && w < watches; w++ {
					_, _, err = z.Exists(ctx, fmt.Sprintf("/watched-%d-%d", i, w), true)
				}
				c[i].Store(z)
				return true
			})
		}()
	}
	return c
}

// await returns when all sessions are connected or have ended, and how many have ended.
func (c crowd) await(ctx context.Context) (took time.Duration, ended int) {
	begun := time.Now()
	there := 0
	for there < len(c) && time.Since(begun) < crowdLimit {
		must.Sleep(ctx, 100*time.Millisecond)
		there, ended = 0, 0
		for i := range c {
			switch z := c[i].Load(); {
			case z == nil:
			case z.State().Ended():
				ended++
				there++
			case z.State() == zk.Connected:
				there++
			}
		}
	}
	if there < len(c) {
		must.Failf("%d of %d sessions are not there after %v", len(c)-there, len(c), crowdLimit)
	}
	return time.Since(begun), ended
}
