package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/rawclient"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

const (
	// probeCommand is the first argument of the process that is the others.
	probeCommand = "probe-process"
	// probeInterval is the time between two pairs of a set and a get.
	probeInterval = 20 * time.Millisecond
	// probePatience is how long the probe waits for its last answers.
	probePatience = 10 * time.Second
	// begin is what the parent writes when the attack begins.
	begin = "begin"
)

// others is the harm that the other clients noticed.
type others struct {
	Samples       int
	P50, P99, Max time.Duration
	Disconnected  int
	Versions      []int32 // the last acknowledged version of each probe's znode
}

// probe is an ordinary client. It sends a set and a get every 20 ms, whether the answers to earlier
// ones have come or not, and measures each from the moment at which it should have been sent: a
// server that stalls for a second owes 50 pairs of answers.
type probe struct {
	addr, path string

	mu           sync.Mutex
	conn         *rawclient.Conn // nil: not connected
	waiting      []time.Time     // unanswered requests
	samples      []time.Duration
	disconnected int
	version      int32
	began        time.Time   // of the attack
	over         bool        // the last pair was sent
	giveUp       *time.Timer // ends the wait for the last answers
}

// runProbe probes the servers at addrs, one client each, until in ends, and prints what they
// noticed since the line that says that the attack begins.
func runProbe(addrs []string, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var running sync.WaitGroup
	var probes []*probe
	for i, addr := range addrs {
		p := &probe{addr: addr, path: probePath(i), began: time.Now()}
		if err := p.connect(ctx); err != nil {
			return err
		}
		probes = append(probes, p)
		// Both end with ctx; awaited below.
		running.Go(func() { p.send(ctx) })
		running.Go(func() { p.receive(ctx) })
	}
	fmt.Fprintln(out, "ready")
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if lines.Text() == begin {
			for _, p := range probes {
				p.reset()
			}
		}
	}
	cancel()
	running.Wait()
	return json.NewEncoder(out).Encode(summary(probes))
}

// probePath returns the znode of a probe. The parent creates it.
func probePath(i int) string { return fmt.Sprintf("/probe-%d", i) }

// summary joins what the probes noticed.
func summary(probes []*probe) *others {
	o := &others{}
	var all []time.Duration
	for _, p := range probes {
		for _, at := range p.waiting { // never answered
			if at.After(p.began) {
				p.samples = append(p.samples, time.Since(at))
			}
		}
		all = append(all, p.samples...)
		o.Disconnected += p.disconnected
		o.Versions = append(o.Versions, p.version)
	}
	slices.Sort(all)
	if o.Samples = len(all); o.Samples > 0 {
		o.P50, o.P99, o.Max = all[len(all)/2], all[len(all)*99/100], all[len(all)-1]
	}
	return o
}

// reset forgets everything that was measured.
func (p *probe) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.samples, p.disconnected, p.began = nil, 0, time.Now()
}

// connect opens a session.
func (p *probe) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	c, err := rawclient.Dial(ctx, p.addr)
	if err != nil {
		return err
	}
	hello := rawclient.NewSession(sessionTimeoutMs)
	if _, err := c.Handshake(hello, 5*time.Second); err != nil {
		_ = c.Close() // the handshake failed already
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conn = c
	return nil
}

// send sends a pair of requests at each tick, and the last pair, which wakes the receiver, when ctx
// ends.
func (p *probe) send(ctx context.Context) {
	next := time.Now()
	xid := int32(1)
	for ; ctx.Err() == nil; xid += 2 {
		next = next.Add(probeInterval)
		select {
		case <-ctx.Done():
		case <-time.After(time.Until(next)):
			p.pair(xid, next, false)
		}
	}
	p.pair(xid, time.Now(), true)
}

// pair sends a set and a get that are due.
func (p *probe) pair(xid int32, due time.Time, last bool) {
	b := rawclient.AppendRequest(nil, xid, proto.OpSetData, setData(p.path, make([]byte, 100)))
	b = rawclient.AppendRequest(b, xid+1, proto.OpGetData, getData(p.path))
	p.mu.Lock()
	p.waiting = append(p.waiting, due, due)
	if last {
		p.over, p.giveUp = true, time.AfterFunc(probePatience, p.hangUp)
	}
	conn := p.conn
	p.mu.Unlock()
	if conn != nil {
		_ = conn.Write(b, probePatience) // the receiver notices an error as well
	}
}

// receive records the replies. If the connection breaks, it connects again: the unanswered requests
// count as answered at that moment.
func (p *probe) receive(ctx context.Context) {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.giveUp != nil {
			p.giveUp.Stop()
		}
	}()
	for {
		p.mu.Lock()
		conn, over := p.conn, p.over && len(p.waiting) == 0
		p.mu.Unlock()
		switch {
		case over, conn == nil && ctx.Err() != nil:
			return
		case conn == nil:
			if p.connect(ctx) == nil {
				p.answered(-1, nil)
			} else {
				time.Sleep(probeInterval)
			}
			continue
		}
		frame, err := conn.ReadFrame(time.Minute)
		if err == nil {
			p.answered(1, frame)
			continue
		}
		_ = conn.Close() // broken already
		p.mu.Lock()
		p.conn = nil
		if ctx.Err() == nil {
			p.disconnected++
		}
		p.mu.Unlock()
	}
}

// hangUp closes the connection.
func (p *probe) hangUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != nil {
		_ = p.conn.Close() // no more answers are expected
	}
}

// answered records the reply to the oldest n requests; -1: to all of them.
func (p *probe) answered(n int, frame []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if frame != nil {
		d := jute.NewDecoder(frame)
		var h proto.ReplyHeader
		h.Decode(&d)
		if h.Xid%2 == 1 && h.Err == 0 && d.Err() == nil { // a set
			var stat proto.Stat
			stat.Decode(&d)
			p.version = stat.Version
		}
	}
	if n < 0 {
		n = len(p.waiting)
	}
	n = min(n, len(p.waiting))
	now := time.Now()
	for _, at := range p.waiting[:n] {
		if at.After(p.began) {
			p.samples = append(p.samples, now.Sub(at))
		}
	}
	p.waiting = p.waiting[n:]
}
