//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"time"

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

// openLoad connects to each address in turn. window is the number of requests in flight per
// connection.
func openLoad(addrs []string, connections, window int) (_ *load, err error) {
	l := &load{window: window}
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	for i := range connections {
		c, err := dial(addrs[i%len(addrs)], i, window)
		if err != nil {
			return nil, err
		}
		c.in = nil // fill allocates a larger buffer
		l.clients = append(l.clients, c)
		if err := unix.SetNonblock(c.fd, true); err != nil {
			return nil, fmt.Errorf("nonblock: %w", err)
		}
		if err := l.watch(unix.EPOLL_CTL_ADD, i, unix.EPOLLIN); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func (l *load) watch(how, i int, events uint32) error {
	err := unix.EpollCtl(l.epoll, how, l.clients[i].fd, &unix.EpollEvent{Events: events, Fd: int32(i)})
	if err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	return nil
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
		if c.fd >= 0 {
			err = errors.Join(err, unix.Close(c.fd))
		}
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

// run sends w's requests until d has passed, or with d == 0 until w has no more. Then it waits for
// the outstanding replies, which count only if they arrive within d. pids are the server's
// processes.
func (l *load) run(w *workload, d time.Duration, pids []int) (*result, error) {
	res := new(result)
	before, err := usedBy(pids)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	inFlight, counting := 0, true
	for i, c := range l.clients {
		n, err := l.send(w, i, l.window, time.Since(start))
		if err != nil {
			return nil, fmt.Errorf("connection %d: %w", c.index, err)
		}
		inFlight += n
	}
	events := make([]unix.EpollEvent, 128)
	for inFlight > 0 {
		ready, err := l.wait(events)
		if err != nil {
			return nil, err
		}
		if len(ready) == 0 {
			return nil, fmt.Errorf("no reply within %s, %d are due", ioTimeout, inFlight)
		}
		for _, e := range ready {
			i := int(e.Fd)
			c := l.clients[i]
			if _, err := c.fill(); err != nil {
				return nil, fmt.Errorf("connection %d: %w", c.index, err)
			}
			now := time.Since(start)
			if counting && d > 0 && now >= d {
				counting = false
				if err := res.finish(now, pids, before); err != nil {
					return nil, err
				}
			}
			answered := 0
			for b := c.frame(); b != nil; b = c.frame() {
				if err := c.answer(b, w.replyBytes); err != nil {
					return nil, fmt.Errorf("connection %d: %s: %w", c.index, w.name, err)
				}
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
			sent, err := l.send(w, i, answered, now)
			if err != nil {
				return nil, fmt.Errorf("connection %d: %w", c.index, err)
			}
			inFlight += sent
		}
	}
	if counting {
		return res, res.finish(time.Since(start), pids, before)
	}
	return res, nil
}

// send appends up to n requests, writes what the socket takes, and returns how many it appended.
func (l *load) send(w *workload, i, n int, now time.Duration) (sent int, err error) {
	c := l.clients[i]
	for sent < n && w.next(c) {
		c.sentAt[int(c.sent)%l.window] = now
		sent++
	}
	if err := c.write(); err != nil {
		return sent, err
	}
	if full := len(c.out) > 0; full != c.writing {
		c.writing = full
		events := uint32(unix.EPOLLIN)
		if full {
			events |= unix.EPOLLOUT
		}
		return sent, l.watch(unix.EPOLL_CTL_MOD, i, events)
	}
	return sent, nil
}

// used holds the CPU time and disk counters up to now.
type used struct {
	server, own time.Duration
	disk        diskUse
}

func usedBy(pids []int) (u used, err error) {
	if u.server, err = cpuOf(pids); err != nil {
		return u, err
	}
	u.own = ownCPU()
	u.disk, err = diskUseBelow(os.TempDir())
	return u, err
}

func (r *result) finish(elapsed time.Duration, pids []int, before used) error {
	after, err := usedBy(pids)
	r.elapsed, r.serverCPU, r.ownCPU = elapsed, after.server-before.server, after.own-before.own
	r.disk = after.disk.since(before.disk)
	return err
}

// wait returns the ready events, in events' memory, or none after ioTimeout.
func (l *load) wait(events []unix.EpollEvent) ([]unix.EpollEvent, error) {
	for {
		n, err := unix.EpollWait(l.epoll, events, int(ioTimeout.Milliseconds()))
		switch {
		case err == nil:
			return events[:n], nil
		case !errors.Is(err, unix.EINTR):
			return nil, fmt.Errorf("epoll: %w", err)
		}
	}
}
