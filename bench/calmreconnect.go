//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

// reconnects is how often all sessions reconnect.
const reconnects = 3

// calmReconnects compares writes while thousands of sessions are idle, and while all of them lose
// their connections and reconnect at once.
func calmReconnects(ctx context.Context, s *settings, k kind) (ms []moment) {
	p := k.start(ctx, server.Options{Keys: keys()})
	defer must.Finally(p.Stop)
	prepare(p.Addr())
	idle := must.Get(openLoad([]string{p.Addr()}, s.sessions, 1))
	// The sessions are not closed: a server may process an abandoned connection after its
	// successor, and then closes the successor, because the session has moved.
	defer must.Finally(idle.abandon)
	sets := workloadNamed("set 100 B")
	quiet := pacedFor(ctx, []string{p.Addr()}, s.rate, sets, sleepFor(s.calm))
	during := new(pacedSeen)
	var took []float64
	for range reconnects {
		took = append(took, during.while(ctx, []string{p.Addr()}, s.rate, sets, func(ctx context.Context) { idle.reconnect(ctx, p.Addr()) }))
	}
	between := spreadOf(took)
	return []moment{{what: aloneSessions, server: p.Name(), seen: quiet},
		{what: reconnecting, than: aloneSessions, server: p.Name(), seen: during, took: took, note: fmt.Sprintf("%d times %s sessions; %.0f ms (%.0f to %.0f) until all were back",
			reconnects, thousands(float64(s.sessions)), between.Median, between.Min, between.Max)}}
}

// reconnectRetry is how long a client waits for an answer before it makes a new connection: a
// server whose accept queue is full loses some connections.
const reconnectRetry = 2 * time.Second

// reconnect closes all sockets, connects all of them again at once, and returns when each client
// has its session back. Nothing may be in flight.
func (l *load) reconnect(ctx context.Context, addr string) {
	for _, c := range l.clients {
		must.Do(l.hangUp(c))
	}
	start := time.Now()
	began, back := make([]time.Duration, len(l.clients)), make([]bool, len(l.clients))
	for i := range l.clients {
		if err := l.resume(i, addr); err != nil {
			must.Failf("session %d: %w", i, err)
		}
		began[i] = time.Since(start)
	}
	const interval, patience = 100 * time.Millisecond, time.Minute
	left, swept := len(l.clients), time.Since(start)
	events := make([]unix.EpollEvent, 512)
	for left > 0 {
		n, err := unix.EpollWait(l.epoll, events, int(interval.Milliseconds()))
		if err != nil && !errors.Is(err, unix.EINTR) {
			must.Failf("epoll: %w", err)
		}
		now := time.Since(start)
		must.Do(ctx.Err())
		if now > patience {
			must.Failf("%d of %d sessions are not back after %s", left, len(l.clients), patience)
		}
		for _, e := range events[:max(n, 0)] {
			i := int(e.Fd)
			b, err := l.resumed(i, e.Events)
			if err != nil { // refused or reset: same as no answer
				must.Do(l.hangUp(l.clients[i]))
				continue
			}
			if b != nil {
				if err := l.clients[i].takeSession(b); err != nil {
					must.Failf("session %d: %w", i, err)
				}
				back[i] = true
				left--
			}
		}
		if now-swept < interval {
			continue
		}
		swept = now
		for i, c := range l.clients {
			if back[i] || now-began[i] < reconnectRetry {
				continue
			}
			if err := errors.Join(l.hangUp(c), l.resume(i, addr)); err != nil {
				must.Failf("session %d: %w", i, err)
			}
			began[i] = now
		}
	}
}

// hangUp closes a client's socket, if any, and forgets the requests in flight.
func (l *load) hangUp(c *client) error {
	c.out, c.r, c.w = c.out[:0], 0, 0
	if c.fd < 0 {
		return nil
	}
	fd := c.fd
	c.fd = -1
	if err := unix.Close(fd); err != nil { // also removes it from the epoll set
		return fmt.Errorf("close: %w", err)
	}
	return nil
}

// resume connects a client that has no socket.
func (l *load) resume(i int, addr string) error {
	if err := l.clients[i].startConnect(addr); err != nil {
		return err
	}
	return l.watch(unix.EPOLL_CTL_ADD, i, unix.EPOLLOUT)
}

// resumed requests the session of a client whose socket is connected, or returns the reply if it
// has arrived.
func (l *load) resumed(i int, events uint32) ([]byte, error) {
	c := l.clients[i]
	if events&unix.EPOLLOUT != 0 { // connected, or refused: the write shows which
		c.appendConnect()
		if err := c.write(); err != nil {
			return nil, err
		}
		return nil, l.watch(unix.EPOLL_CTL_MOD, i, unix.EPOLLIN)
	}
	if _, err := c.fill(); err != nil {
		return nil, err
	}
	return c.frame(), nil
}
