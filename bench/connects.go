//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/test/compat/server"
)

// connectors is how many clients open and close sessions at the same time.
const connectors = 16

// benchConnects measures sessions that are opened on new connections and closed at once. With TLS,
// each connection does a full handshake, and both sides verify a certificate.
func benchConnects(ctx context.Context, s *settings) {
	name, row, run := "connects", "session opened and closed", connectsFor
	if s.tlsKeys != nil {
		name, row, run = "connects-tls", row+", mutual TLS", connectsTLSFor
	}
	var processes []*server.Process
	for _, k := range s.servers {
		p := k.start(ctx, server.Options{Keys: s.withTLS(keys())})
		defer must.Finally(p.Stop)
		processes = append(processes, p)
		run(ctx, p, s.warm)
	}
	seen := make([]measured, len(processes))
	for range s.rounds {
		for i, p := range processes {
			r := run(ctx, p, s.seconds)
			progress(name+" %-16s %7.0f sessions/s, %.0f µs of CPU for each", p.Name(), r.opsPerSecond(), r.cpuPerOp())
			seen[i].add(r)
			must.Do(ctx.Err())
		}
	}
	c := comparison{Row: row, Shape: fmt.Sprintf("%dx1", connectors)}
	for i, p := range processes {
		c.Servers = append(c.Servers, seen[i].figures(p.Name(), memoryOf(p.Pid())))
	}
	must.Do(s.out.comparisons(name, fmt.Sprintf("median of %d rounds of %s", s.rounds, s.seconds), []comparison{c}))
}

// connectsFor lets clients open a session on a new connection and close it, repeatedly, from a
// single goroutine. A session counts when its close was answered; its latency starts with its
// connection. Sessions in flight when d has passed do not count.
func connectsFor(ctx context.Context, p *server.Process, d time.Duration) *result {
	l := &load{window: 1}
	l.epoll = must.Get(unix.EpollCreate1(unix.EPOLL_CLOEXEC))
	for i := range connectors {
		l.clients = append(l.clients, &client{index: i, fd: -1, in: make([]byte, 256), sentAt: make([]time.Duration, 1)})
	}
	defer must.Finally(l.abandon)
	pids := []int{p.Pid()}
	before := usedBy(pids)
	res, start := new(result), time.Now()
	for i := range l.clients {
		l.beginSession(i, p.Addr(), 0)
	}
	counting, open := true, len(l.clients)
	events := make([]unix.EpollEvent, connectors)
	for open > 0 {
		ready := l.wait(events)
		if len(ready) == 0 {
			must.Failf("no answer within %s, %d are due", ioTimeout, open)
		}
		now := time.Since(start)
		if counting && now >= d {
			counting = false
			res.finish(now, pids, before)
		}
		for _, e := range ready {
			i := int(e.Fd)
			if !l.goOn(i) {
				continue
			}
			if now = time.Since(start); counting {
				res.ops++
				res.latencies.note(now - l.clients[i].sentAt[0])
			}
			if !counting || ctx.Err() != nil {
				open--
				continue
			}
			l.beginSession(i, p.Addr(), now)
		}
	}
	must.Do(ctx.Err())
	return res
}

// connectsTLSFor is connectsFor with a goroutine for each client, because a handshake blocks.
func connectsTLSFor(ctx context.Context, p *server.Process, d time.Duration) *result {
	pids, res := []int{p.Pid()}, new(result)
	before, start := usedBy(pids), time.Now()
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	results, errs := make([]result, connectors), make([]error, connectors)
	var clients sync.WaitGroup
	for i := range connectors {
		// Ends after d or with ctx; awaited below.
		clients.Go(func() {
			for errs[i] == nil && ctx.Err() == nil {
				begun := time.Now()
				var c *client
				if c, errs[i] = dial(p.Addr(), i, 1); errs[i] == nil {
					errs[i] = c.close()
				}
				if errs[i] == nil && ctx.Err() == nil {
					results[i].ops++
					results[i].latencies.note(time.Since(begun))
				}
			}
		})
	}
	clients.Wait()
	res.finish(time.Since(start), pids, before)
	must.Do(errors.Join(errs...))
	for i := range results {
		res.ops += results[i].ops
		res.latencies.add(&results[i].latencies)
	}
	return res
}

// beginSession connects a client without a connection, and requests a session on it.
func (l *load) beginSession(i int, addr string, now time.Duration) {
	c := l.clients[i]
	c.session, c.passwd, c.sent, c.got, c.sentAt[0] = 0, [proto.PasswdBytes]byte{}, 0, 0, now
	must.Do(c.startConnect(addr))
	c.appendConnect()
	must.Do(c.write())
	events := uint32(unix.EPOLLIN)
	if c.writing = len(c.out) > 0; c.writing { // not connected yet
		events |= unix.EPOLLOUT
	}
	l.watch(unix.EPOLL_CTL_ADD, i, events)
}

// goOn takes the next step for a client of connectsFor: when the client has a session, goOn
// requests the close, and after the reply it closes the connection and returns true.
func (l *load) goOn(i int) (closed bool) {
	c := l.clients[i]
	if c.writing {
		if must.Do(c.write()); len(c.out) > 0 {
			return false
		}
		c.writing = false
		l.watch(unix.EPOLL_CTL_MOD, i, unix.EPOLLIN)
		return false
	}
	must.Get(c.fill())
	b := c.frame()
	if b == nil {
		return false
	}
	if c.session == 0 {
		must.Do(c.takeSession(b))
		c.request(proto.OpCloseSession, func(b []byte) []byte { return b })
		must.Do(c.write())
		return false
	}
	must.Do(c.answer(b, 0))
	fd := c.fd
	c.fd = -1
	must.Do(unix.Close(fd)) // also removes it from the epoll set
	return true
}
