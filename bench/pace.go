//go:build linux

package main

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// pacedMost bounds the unanswered requests of a paced load. A server that exceeds it counts as too
// slow.
const pacedMost = 1 << 20

// pace is the schedule of an open loop: requests are due at a fixed rate, whatever happens to
// earlier ones.
type pace struct {
	interval time.Duration
	sent     int // also the number of the next request
}

// due returns when the next request must be sent, from the start of the load.
func (p *pace) due() time.Duration { return time.Duration(p.sent+1) * p.interval }

// pacedSeen holds the figures of a paced load.
type pacedSeen struct {
	latencies histogram // from when each request was due until its reply
	late      histogram // from when each request was due until it was sent; part of the latency
}

func (s *pacedSeen) add(o *pacedSeen) {
	s.latencies.add(&o.latencies)
	s.late.add(&o.late)
}

// paced sends w's requests at a steady rate over all connections in turn until stop is closed. A
// latency counts from the time at which the request was due, so a stall, of the server or of this
// program, shows in every request that it delays. paced waits for the outstanding replies and
// counts them. No other goroutine may use the load meanwhile.
func (l *load) paced(ctx context.Context, w *workload, rate int, stop <-chan struct{}) *pacedSeen {
	timer := must.Get(unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC))
	defer must.Finally(func() error { return unix.Close(timer) })
	const isTimer = -1
	must.Do(unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, timer, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: isTimer}))
	p := pace{interval: time.Second / time.Duration(rate)}
	every := unix.NsecToTimespec(int64(p.interval))
	must.Do(unix.TimerfdSettime(timer, 0, &unix.ItimerSpec{Interval: every, Value: every}, nil))
	start := time.Now()
	seen := new(pacedSeen)
	due := make([][]time.Duration, len(l.clients)) // per connection: of unanswered requests, oldest first
	inFlight, sending := 0, true
	events := make([]unix.EpollEvent, 128)
	for sending || inFlight > 0 {
		ready := l.wait(events)
		for _, e := range ready {
			if e.Fd == isTimer {
				var expirations [8]byte
				if _, err := unix.Read(timer, expirations[:]); err != nil && err != unix.EAGAIN {
					must.Failf("timerfd: %w", err)
				}
				continue
			}
			i := int(e.Fd)
			c := l.clients[i]
			if e.Events&unix.EPOLLOUT != 0 {
				l.send(nothing, i, 0, 0)
			}
			must.Get(c.fill())
			now := time.Since(start)
			for b := c.frame(); b != nil; b = c.frame() {
				must.Do(c.answer(b, w.replyBytes))
				seen.latencies.note(now - due[i][0])
				due[i] = due[i][1:]
				inFlight--
			}
		}
		select {
		case <-stop:
			sending = false
		case <-ctx.Done():
			must.Do(ctx.Err())
		default:
		}
		now := time.Since(start)
		for sending && p.due() <= now {
			i := p.sent % len(l.clients)
			due[i] = append(due[i], p.due())
			seen.late.note(now - p.due())
			p.sent++
			if inFlight++; inFlight > pacedMost {
				must.Failf("%d requests wait for an answer: the server is too slow for %d per second", inFlight, rate)
			}
			w.next(l.clients[i])
			l.send(nothing, i, 0, 0)
		}
		oldest := now
		for _, d := range due {
			if len(d) > 0 {
				oldest = min(oldest, d[0])
			}
		}
		if now-oldest > pacedPatience {
			must.Failf("no reply within %s, %d are due", pacedPatience, inFlight)
		}
	}
	return seen
}

// pacedPatience is how long a server under a paced load may be silent: enough for ZooKeeper in the
// worst case of calm.
const pacedPatience = time.Minute
