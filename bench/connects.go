//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/test/compat/server"
)

// connectors is how many clients open and close sessions at the same time.
const connectors = 16

// benchConnects measures sessions that are opened on new connections and closed at once.
func benchConnects(ctx context.Context, s *settings) (err error) {
	var processes []*server.Process
	defer func() {
		for _, p := range processes {
			err = errors.Join(err, p.Stop())
		}
	}()
	for _, k := range s.servers {
		p, err := k.start(ctx, server.Options{Keys: keys()})
		if err != nil {
			return err
		}
		processes = append(processes, p)
		if _, err := connectsFor(ctx, p, s.warm); err != nil {
			return fmt.Errorf("%s: %w", p.Name(), err)
		}
	}
	seen := make([]measured, len(processes))
	for range s.rounds {
		for i, p := range processes {
			r, err := connectsFor(ctx, p, s.seconds)
			if err != nil {
				return fmt.Errorf("%s: %w", p.Name(), err)
			}
			progress("connects %-16s %7.0f sessions/s, %.0f µs of CPU for each", p.Name(), r.opsPerSecond(), r.cpuPerOp())
			seen[i].add(r)
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	c := comparison{Row: "session opened and closed", Shape: fmt.Sprintf("%dx1", connectors)}
	for i, p := range processes {
		m, err := memoryOf(p.Pid())
		if err != nil {
			return err
		}
		c.Servers = append(c.Servers, seen[i].figures(p.Name(), m))
	}
	return s.out.comparisons("connects", fmt.Sprintf("median of %d rounds of %s", s.rounds, s.seconds), []comparison{c})
}

// connectsFor lets clients open a session on a new connection and close it, repeatedly, from a
// single goroutine. A session counts when its close was answered; its latency starts with its
// connection. Sessions in flight when d has passed do not count.
func connectsFor(ctx context.Context, p *server.Process, d time.Duration) (_ *result, err error) {
	l := &load{window: 1}
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	for i := range connectors {
		l.clients = append(l.clients, &client{index: i, fd: -1, in: make([]byte, 256), sentAt: make([]time.Duration, 1)})
	}
	defer func() { err = errors.Join(err, l.abandon()) }()
	pids := []int{p.Pid()}
	before, err := usedBy(pids)
	if err != nil {
		return nil, err
	}
	res, start := new(result), time.Now()
	for i := range l.clients {
		if err := l.beginSession(i, p.Addr(), 0); err != nil {
			return nil, err
		}
	}
	counting, open := true, len(l.clients)
	events := make([]unix.EpollEvent, connectors)
	for open > 0 {
		ready, err := l.wait(events)
		if err != nil {
			return nil, err
		}
		if len(ready) == 0 {
			return nil, fmt.Errorf("no answer within %s, %d are due", ioTimeout, open)
		}
		now := time.Since(start)
		if counting && now >= d {
			counting = false
			if err := res.finish(now, pids, before); err != nil {
				return nil, err
			}
		}
		for _, e := range ready {
			i := int(e.Fd)
			closed, err := l.goOn(i)
			if err != nil {
				return nil, fmt.Errorf("client %d: %w", i, err)
			}
			if !closed {
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
			if err := l.beginSession(i, p.Addr(), now); err != nil {
				return nil, err
			}
		}
	}
	return res, ctx.Err()
}

// beginSession connects a client without a connection, and requests a session on it.
func (l *load) beginSession(i int, addr string, now time.Duration) error {
	c := l.clients[i]
	c.session, c.passwd, c.sent, c.got, c.sentAt[0] = 0, [proto.PasswdBytes]byte{}, 0, 0, now
	if err := c.startConnect(addr); err != nil {
		return err
	}
	c.appendConnect()
	if err := c.write(); err != nil {
		return err
	}
	events := uint32(unix.EPOLLIN)
	if c.writing = len(c.out) > 0; c.writing { // not connected yet
		events |= unix.EPOLLOUT
	}
	return l.watch(unix.EPOLL_CTL_ADD, i, events)
}

// goOn takes the next step for a client of connectsFor: when the client has a session, goOn
// requests the close, and after the reply it closes the connection and returns true.
func (l *load) goOn(i int) (closed bool, err error) {
	c := l.clients[i]
	if c.writing {
		if err := c.write(); err != nil || len(c.out) > 0 {
			return false, err
		}
		c.writing = false
		return false, l.watch(unix.EPOLL_CTL_MOD, i, unix.EPOLLIN)
	}
	if _, err := c.fill(); err != nil {
		return false, err
	}
	b := c.frame()
	if b == nil {
		return false, nil
	}
	if c.session == 0 {
		if err := c.takeSession(b); err != nil {
			return false, err
		}
		c.request(proto.OpCloseSession, func(b []byte) []byte { return b })
		return false, c.write()
	}
	if err := c.answer(b, 0); err != nil {
		return false, err
	}
	fd := c.fd
	c.fd = -1
	return true, unix.Close(fd) // also removes it from the epoll set
}
