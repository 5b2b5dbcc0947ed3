package link

import (
	"sync"

	"github.com/gozkd/gozkd/internal/rawio"
)

// parking waits for the clients of parked links, on one goroutine for all links of a server. It
// begins with the first parked link and ends with Host.Stop. An active link costs it nothing.
type parking struct {
	mu     sync.Mutex // guards all; no other lock is taken while it is held
	waiter *rawio.Waiter
	links  []*Link // the parked links by their descriptors
	ended  bool
}

// add parks a link, and reports whether it could. l.mu is held.
func (p *parking) add(l *Link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return false
	}
	if p.waiter == nil {
		w, err := rawio.NewWaiter()
		if err != nil {
			return false
		}
		p.waiter = w
		l.host.Goroutines.Go(func() { p.run(w) }) // ends when w is closed
	}
	fd, err := p.waiter.Add(l.raw, l.parkedAs > 0)
	if err != nil {
		return false
	}
	l.parkedAs = int32(fd)
	for int(l.parkedAs) >= len(p.links) {
		p.links = append(p.links, nil)
	}
	p.links[l.parkedAs] = l
	return true
}

// remove forgets a link that is no longer parked. l.mu is held.
func (p *parking) remove(l *Link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.links[l.parkedAs] = nil
}

// run resumes the links whose clients are no longer quiet.
func (p *parking) run(w *rawio.Waiter) {
	defer p.end() // the system may not allow to wait
	for w.Wait(p.resume) == nil {
	}
}

// resume resumes the link with a descriptor. If the link of the event has closed, this is another
// link, whose reader finds nothing and waits.
func (p *parking) resume(fd int) {
	p.mu.Lock()
	l := p.links[fd]
	p.mu.Unlock()
	if l != nil {
		l.mu.Lock()
		l.unpark()
		l.mu.Unlock()
	}
}

// end lets no link be parked any more, and resumes those that are.
func (p *parking) end() {
	p.mu.Lock()
	if p.ended = true; p.waiter != nil {
		p.waiter.Close()
	}
	n := len(p.links)
	p.mu.Unlock()
	for fd := range n {
		p.resume(fd)
	}
}
