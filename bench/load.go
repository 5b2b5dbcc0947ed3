//go:build linux

package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// load keeps the windows of many connections full from a single goroutine. It waits with epoll for
// replies and sends a new request for each reply, with a write per connection.
type load struct {
	clients []*client
	window  int
	epoll   int
}

// result holds the figures of a run of a load.
type result struct {
	ops       int64
	elapsed   time.Duration
	latencies histogram
	serverCPU time.Duration // of all the server's processes; 0 if no process is known
	ownCPU    time.Duration // of this process
	disk      diskUse       // of all processes
}

func (r *result) opsPerSecond() float64 { return float64(r.ops) / r.elapsed.Seconds() }

// cpuPerOp returns the server's CPU time per operation in microseconds.
func (r *result) cpuPerOp() float64 { return r.serverCPU.Seconds() * 1e6 / float64(r.ops) }

// target is a server, or the members of an ensemble with the connections spread over them.
type target struct {
	name  string
	addrs []string
	pids  []int // of all members, to add up their CPU time; empty if unknown
}

// openLoad connects to each address in turn, with window requests in flight per connection.
func openLoad(addrs []string, connections, window int) *load {
	l := &load{window: window}
	l.epoll = must.Get(unix.EpollCreate1(unix.EPOLL_CLOEXEC))
	err := must.Try(func() {
		for i := range connections {
			c := must.Get(dial(addrs[i%len(addrs)], i, window))
			c.in = nil // fill allocates a larger buffer
			l.clients = append(l.clients, c)
			must.Do(unix.SetNonblock(c.fd, true))
			l.watch(unix.EPOLL_CTL_ADD, i, unix.EPOLLIN)
		}
	})
	if err != nil {
		must.Do(errors.Join(err, l.close()))
	}
	return l
}

func (l *load) watch(how, i int, events uint32) {
	must.Do(unix.EpollCtl(l.epoll, how, l.clients[i].fd, &unix.EpollEvent{Events: events, Fd: int32(i)}))
}

// close ends the sessions and closes the sockets.
func (l *load) close() error {
	var err error
	for _, c := range l.clients {
		err = errors.Join(err, c.close())
	}
	return errors.Join(err, unix.Close(l.epoll))
}

// abandon closes the sockets of a failed load without closing the sessions: requests may still be
// in flight. The server expires the sessions.
func (l *load) abandon() error {
	err := unix.Close(l.epoll)
	for _, c := range l.clients {
		err = errors.Join(err, unix.Close(c.fd))
	}
	return err
}

// whileOpen closes l after work, or abandons l if an error ends work.
func (l *load) whileOpen(work func()) {
	if err := must.Try(work); err != nil {
		must.Do(errors.Join(err, l.abandon()))
	}
	must.Do(l.close())
}

// play sends w's requests until d has passed, or with d == 0 until w has no more. Then it waits for
// the outstanding replies, which count only if they arrive within d. pids are the server's
// processes.
func (l *load) play(w *workload, d time.Duration, pids []int) *result {
	res := new(result)
	before := usedBy(pids)
	start := time.Now()
	inFlight, counting := 0, true
	for i := range l.clients {
		inFlight += l.send(w, i, l.window, time.Since(start))
	}
	events := make([]unix.EpollEvent, 128)
	for inFlight > 0 {
		ready := l.wait(events)
		if len(ready) == 0 {
			must.Failf("no reply within %s, %d are due", ioTimeout, inFlight)
		}
		for _, e := range ready {
			i := int(e.Fd)
			c := l.clients[i]
			must.Get(c.fill())
			now := time.Since(start)
			if counting && d > 0 && now >= d {
				counting = false
				res.finish(now, pids, before)
			}
			answered := 0
			for b := c.frame(); b != nil; b = c.frame() {
				must.Do(c.answer(b, w.replyBytes))
				answered++
				if counting {
					res.ops++
					res.latencies.note(now - c.sentAt[int(c.got)%l.window])
				}
			}
			inFlight -= answered
			if !counting {
				answered = 0
			}
			inFlight += l.send(w, i, answered, now)
		}
	}
	if counting {
		res.finish(time.Since(start), pids, before)
	}
	return res
}

// send appends up to n requests, writes what the socket takes, and returns how many it appended.
func (l *load) send(w *workload, i, n int, now time.Duration) (sent int) {
	c := l.clients[i]
	for sent < n && w.next(c) {
		c.sentAt[int(c.sent)%l.window] = now
		sent++
	}
	must.Do(c.write())
	if full := len(c.out) > 0; full != c.writing {
		c.writing = full
		events := uint32(unix.EPOLLIN)
		if full {
			events |= unix.EPOLLOUT
		}
		l.watch(unix.EPOLL_CTL_MOD, i, events)
		return sent
	}
	return sent
}

// used holds the CPU time and disk counters up to now.
type used struct {
	server, own time.Duration
	disk        diskUse
}

func usedBy(pids []int) used { return used{cpuOf(pids), ownCPU(), diskUseBelow(os.TempDir())} }

func (r *result) finish(elapsed time.Duration, pids []int, before used) {
	after := usedBy(pids)
	r.elapsed, r.serverCPU, r.ownCPU = elapsed, after.server-before.server, after.own-before.own
	r.disk = after.disk.since(before.disk)
}

// wait returns the ready events, in events' memory, or none after ioTimeout.
func (l *load) wait(events []unix.EpollEvent) []unix.EpollEvent {
	for {
		n, err := unix.EpollWait(l.epoll, events, int(ioTimeout.Milliseconds()))
		switch {
		case err == nil:
			return events[:n]
		case !errors.Is(err, unix.EINTR):
			must.Failf("epoll: %w", err)
		}
	}
}

// longest is the largest duration that a histogram tells apart; longer ones count as this long.
const longest = time.Hour

// histogram counts durations to two significant digits. Not safe for concurrent use.
type histogram struct{ h *hdrhistogram.Histogram }

func (h *histogram) init() *hdrhistogram.Histogram {
	if h.h == nil {
		h.h = hdrhistogram.New(1, int64(longest), 2)
	}
	return h.h
}

// note counts d once; a negative d counts as 0.
func (h *histogram) note(d time.Duration) {
	if err := h.init().RecordValue(int64(min(max(d, 0), longest))); err != nil {
		panic("bench: " + err.Error()) // only values above longest are refused
	}
}

// add counts everything that o counted.
func (h *histogram) add(o *histogram) { h.init().Merge(o.init()) }

// quantile returns the duration that a fraction q of all does not exceed, 0 < q <= 1; of none 0.
func (h *histogram) quantile(q float64) time.Duration {
	return time.Duration(h.init().ValueAtQuantile(100 * q))
}

func (h *histogram) max() time.Duration { return time.Duration(h.init().Max()) }

// pacedMost bounds the unanswered requests of a paced load. A server that exceeds it is too slow.
const pacedMost = 1 << 20

// pace is the schedule of an open loop: requests are due at a fixed rate, whatever happens.
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

// pacedPatience is how long a server under a paced load may be silent: enough for all of calm.
const pacedPatience = time.Minute
