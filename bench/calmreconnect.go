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

// reconnects is how often all sessions reconnect.
const reconnects = 3

// calmReconnects compares writes while thousands of sessions are idle, and while all of these lose their connections and connect again
// at once.
func calmReconnects(ctx context.Context, s *settings, k kind) (ms []moment, err error) {
	p, err := k.start(ctx, server.Options{Keys: keys()})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	if err := prepare(p.Addr()); err != nil {
		return nil, err
	}
	idle, err := openLoad([]string{p.Addr()}, s.sessions, 1)
	if err != nil {
		return nil, fmt.Errorf("%d sessions: %w", s.sessions, err)
	}
	defer func() { err = errors.Join(err, idle.close()) }()
	sets := workloadNamed("set 100 B")
	quiet, err := pacedFor(ctx, []string{p.Addr()}, s.rate, sets, sleepFor(s.calm))
	if err != nil {
		return nil, err
	}
	during := new(pacedSeen)
	var took []float64
	for range reconnects {
		h, err := pacedFor(ctx, []string{p.Addr()}, s.rate, sets, func(ctx context.Context) error {
			start := time.Now()
			if err := idle.reconnect(ctx, p.Addr()); err != nil {
				return err
			}
			took = append(took, time.Since(start).Seconds()*1e3)
			if left := leastCatch - time.Since(start); left > 0 {
				return sleepFor(left)(ctx)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		during.add(h)
	}
	between := spreadOf(took)
	return []moment{{what: aloneSessions, server: p.Name(), seen: quiet},
		{what: reconnecting, than: aloneSessions, server: p.Name(), seen: during, took: took, note: fmt.Sprintf("%d times %s sessions; %.0f ms (%.0f to %.0f) until all were back",
			reconnects, thousands(float64(s.sessions)), between.Median, between.Min, between.Max)}}, nil
}

// reconnect closes all sockets, connects all again without waiting for any, and returns when each has its session back. Nothing may be
// in flight.
func (l *load) reconnect(ctx context.Context, addr string) error {
	for _, c := range l.clients {
		if err := unix.Close(c.fd); err != nil { // leaves the epoll set with it
			return fmt.Errorf("close: %w", err)
		}
		c.fd = -1
	}
	for i, c := range l.clients {
		if err := c.startConnect(addr); err != nil {
			return fmt.Errorf("session %d: %w", i, err)
		}
		if err := l.watch(unix.EPOLL_CTL_ADD, i, unix.EPOLLOUT); err != nil {
			return err
		}
	}
	const interval, patience = 100 * time.Millisecond, time.Minute
	start, left := time.Now(), len(l.clients)
	events := make([]unix.EpollEvent, 512)
	for left > 0 {
		n, err := unix.EpollWait(l.epoll, events, int(interval.Milliseconds()))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("epoll: %w", err)
		}
		if ctx.Err() != nil || time.Since(start) > patience {
			return fmt.Errorf("%d of %d sessions are not back after %s: %w", left, len(l.clients), time.Since(start), ctx.Err())
		}
		for _, e := range events[:max(n, 0)] {
			i := int(e.Fd)
			c := l.clients[i]
			if e.Events&unix.EPOLLOUT != 0 { // connected, or refused, which the write finds out
				c.appendConnect()
				if err := c.write(); err != nil {
					return fmt.Errorf("session %d: %w", i, err)
				}
				if err := l.watch(unix.EPOLL_CTL_MOD, i, unix.EPOLLIN); err != nil {
					return err
				}
				continue
			}
			if _, err := c.fill(); err != nil {
				return fmt.Errorf("session %d: %w", i, err)
			}
			if b := c.frame(); b != nil {
				if err := c.takeSession(b); err != nil {
					return fmt.Errorf("session %d: %w", i, err)
				}
				left--
			}
		}
	}
	return nil
}
