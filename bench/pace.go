//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// pacedMost is how many requests may wait for an answer on all connections of a paced load: then the server counts as too slow for it.
const pacedMost = 1 << 20

// pace says when each request of an open loop is due: whatever happens to those before, they come at the same rate.
type pace struct {
	interval time.Duration
	sent     int // requests, which is the number of the next one
}

// due returns when the next request has to be sent, from the start of the load.
func (p *pace) due() time.Duration { return time.Duration(p.sent+1) * p.interval }

// pacedSeen is what a paced load saw.
type pacedSeen struct {
	latencies histogram // from when each request was due until it was answered
	late      histogram // from when each was due until this program sent it, which is part of the former
}

func (s *pacedSeen) add(o *pacedSeen) {
	s.latencies.add(&o.latencies)
	s.late.add(&o.late)
}

// paced sends w's requests at a steady rate over all connections in turn, until stop is closed, and counts each latency from when
// the request was due: so a stall of the server, and one of this program, shows in all requests that it delays. Those that are not
// answered when stop is closed are waited for and counted. No other goroutine may use the load meanwhile.
func (l *load) paced(ctx context.Context, w *workload, rate int, stop <-chan struct{}) (_ *pacedSeen, err error) {
	timer, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("timerfd: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Close(timer)) }()
	const isTimer = -1
	if err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, timer, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: isTimer}); err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	p := pace{interval: time.Second / time.Duration(rate)}
	every := unix.NsecToTimespec(int64(p.interval))
	if err := unix.TimerfdSettime(timer, 0, &unix.ItimerSpec{Interval: every, Value: every}, nil); err != nil {
		return nil, fmt.Errorf("timerfd: %w", err)
	}
	start := time.Now()
	seen := new(pacedSeen)
	due := make([][]time.Duration, len(l.clients)) // by connection: of what is not answered, oldest first
	inFlight, sending := 0, true
	events := make([]unix.EpollEvent, 128)
	for sending || inFlight > 0 {
		ready, err := l.wait(events)
		if err != nil {
			return nil, err
		}
		for _, e := range ready {
			if e.Fd == isTimer {
				var expirations [8]byte
				if _, err := unix.Read(timer, expirations[:]); err != nil && err != unix.EAGAIN {
					return nil, fmt.Errorf("timerfd: %w", err)
				}
				continue
			}
			i := int(e.Fd)
			c := l.clients[i]
			if e.Events&unix.EPOLLOUT != 0 {
				if _, err := l.send(nothing, i, 0, 0); err != nil {
					return nil, err
				}
			}
			if _, err := c.fill(); err != nil {
				return nil, fmt.Errorf("connection %d: %w", c.index, err)
			}
			now := time.Since(start)
			for b := c.frame(); b != nil; b = c.frame() {
				if err := c.answer(b, w.replyBytes); err != nil {
					return nil, fmt.Errorf("connection %d: %s: %w", c.index, w.name, err)
				}
				seen.latencies.note(now - due[i][0])
				due[i] = due[i][1:]
				inFlight--
			}
		}
		select {
		case <-stop:
			sending = false
		case <-ctx.Done():
			return nil, ctx.Err()
		default:
		}
		now := time.Since(start)
		for sending && p.due() <= now {
			i := p.sent % len(l.clients)
			due[i] = append(due[i], p.due())
			seen.late.note(now - p.due())
			p.sent++
			if inFlight++; inFlight > pacedMost {
				return nil, fmt.Errorf("%d requests wait for an answer: the server is too slow for %d per second", inFlight, rate)
			}
			w.next(l.clients[i])
			if _, err := l.send(nothing, i, 0, 0); err != nil {
				return nil, fmt.Errorf("connection %d: %w", i, err)
			}
		}
		oldest := now
		for _, d := range due {
			if len(d) > 0 {
				oldest = min(oldest, d[0])
			}
		}
		if now-oldest > pacedPatience {
			return nil, fmt.Errorf("no reply within %s, %d are due", pacedPatience, inFlight)
		}
	}
	return seen, nil
}

// pacedPatience is after how long without an answer a server counts as dead under a paced load: what ZooKeeper needs for the worst
// that calm does to it.
const pacedPatience = time.Minute
