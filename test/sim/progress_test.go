package sim

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"net"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/rawclient"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// Progress is a property: while a majority is well, a write is acknowledged within progressBound. A
// majority is well if more than half of the voters run, are not paused, have healthy disks, and can
// all talk with each other. The bound is that of a client, which first has to find one of them:
// while nothing was acknowledged for probeEvery, a probe at each member writes about that often.
const (
	progressBound = 10 * electionTimeout
	lossyBound    = 30 * electionTimeout // during a bad network
	probeEvery    = electionTimeout
	probePatience = 4 * electionTimeout
	probeHost     = "probe"
)

// majorityWell reports whether a majority of the voters is well. If a reconfig may have changed who
// votes, a majority must be well in each case.
func (w *world) majorityWell() bool {
	var sure, unsure uint
	for i, m := range w.members {
		switch {
		case m.unsure:
			unsure |= 1 << i
		case m.role == voter:
			sure |= 1 << i
		}
	}
	for some := unsure; ; some = (some - 1) & unsure {
		if !w.majorityWellOf(sure | some) {
			return false
		}
		if some == 0 {
			return true
		}
	}
}

func (w *world) majorityWellOf(voters uint) bool {
	for set := voters; set > 0; set = (set - 1) & voters {
		if 2*bits.OnesCount(set) > bits.OnesCount(voters) && w.allWell(set) {
			return true
		}
	}
	return false
}

// allWell reports whether members are well, and connected with each other.
func (w *world) allWell(set uint) bool {
	for i, a := range w.members {
		if set&(1<<i) == 0 {
			continue
		}
		if !a.up() || a.clock.isPaused() || a.disk.current() != (diskFaults{}) {
			return false
		}
		for j, b := range w.members {
			if j != i && set&(1<<j) != 0 && w.disturbs[link{a.host(), b.host()}] > 0 {
				return false
			}
		}
	}
	return true
}

func (c *clock) isPaused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.paused
}

// judgeProgress is called after every change of the world, and now and then.
func (w *world) judgeProgress() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	if !w.majorityWell() {
		w.goodFrom = -1
		return
	}
	if w.goodFrom < 0 {
		w.goodFrom = now
	}
	still := now - max(w.goodFrom, w.lastAck, w.restUntil) // nobody asks while clients rest
	w.longest = max(w.longest, still)
	bound := progressBound
	if w.lossy.Load() {
		bound = lossyBound
	}
	if still > bound && !w.stood {
		w.stood = true
		w.problems = append(w.problems, "at "+now.String()+": progress: no write is acknowledged although a majority is well since "+w.goodFrom.String()+
			", the last was at "+w.lastAck.String())
		w.logs.Error("COMPLAINT", "what", w.problems[len(w.problems)-1])
	}
}

// acked notes that a probe's write was acknowledged.
func (w *world) acked() {
	w.judgeProgress()
	w.mu.Lock()
	w.lastAck = w.now()
	w.stood = false
	w.mu.Unlock()
}

// well reports whether a majority is well.
func (w *world) well() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.goodFrom >= 0
}

// idle reports whether no write was acknowledged for probeEvery.
func (w *world) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now() >= w.lastAck+probeEvery
}

// probe writes through one member until stop is closed.
func (w *world) probe(m *member, stop <-chan struct{}) {
	rng := w.rand("probe at " + m.host())
	var c net.Conn
	for xid := int32(1); ; xid++ {
		select {
		case <-stop:
			if c != nil {
				_ = c.Close() // its session expires
			}
			return
		case <-time.After(max(between(rng, probeEvery/2, probeEvery*3/2), w.restLeft())):
		}
		if !w.idle() {
			continue
		}
		var err error
		if c == nil {
			if c, err = w.probeConnect(m); err != nil {
				continue
			}
		}
		if err := probeWrite(c, xid); err != nil {
			_ = c.Close() // the error was reported
			c = nil
			continue
		}
		w.acked()
	}
}

const probePath = "/probe"

// prepared creates the znodes of probes and growers: what probes set afterwards adds no data.
func (w *world) prepared() bool {
	c, err := w.probeConnect(w.members[0])
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }() // its session expires
	_, err = probeAsk(c, rawclient.AppendRequest(nil, 1, proto.OpCreate, createOf(growerHome, 0)))
	return err == nil && probeWrite(c, 2) == nil
}

func (w *world) probeConnect(m *member) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), probePatience)
	defer cancel()
	c, err := w.dial(ctx, probeHost, m.clientAddress())
	if err != nil {
		return nil, err
	}
	hello := proto.ConnectRequest{TimeoutMs: 10_000, Passwd: make([]byte, proto.PasswdBytes)}
	if _, err = probeAsk(c, rawclient.AppendFrame(nil, hello.Append(nil))); err == nil {
		create := proto.CreateRequest{Path: probePath, ACL: proto.OpenACL()}
		_, err = probeAsk(c, rawclient.AppendRequest(nil, 0, proto.OpCreate, create.Append(nil, proto.OpCreate)))
	}
	if err != nil {
		_ = c.Close() // the earlier error says more
		return nil, err
	}
	return c, nil
}

func probeWrite(c net.Conn, xid int32) error {
	set := proto.SetDataRequest{Path: probePath, Data: []byte("x"), Version: -1}
	b, err := probeAsk(c, rawclient.AppendRequest(nil, xid, proto.OpSetData, set.Append(nil)))
	if err != nil {
		return err
	}
	d := jute.NewDecoder(b)
	var h proto.ReplyHeader
	if h.Decode(&d); h.Err != proto.OK {
		return errors.New("sim: the probe failed: " + h.Err.Error())
	}
	return nil
}

// probeAsk sends a frame and returns the next one.
func probeAsk(c net.Conn, frame []byte) ([]byte, error) {
	if err := c.SetDeadline(time.Now().Add(probePatience)); err != nil {
		return nil, err
	}
	if _, err := c.Write(frame); err != nil {
		return nil, err
	}
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(head[:]))
	_, err := io.ReadFull(c, b)
	return b, err
}

// watchOver starts the probes and movers, and watches over progress and over servers that stop by
// themselves. It returns the function that ends that.
func (w *world) watchOver() (end func()) {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for _, m := range w.members {
		wg.Go(func() { w.probe(m, stop) }) // stopped and awaited by end
	}
	for n, timeout := range moverTimeouts {
		wg.Go(func() { w.newMover(fmt.Sprintf("mover-%d", n), timeout).run(stop) }) // stopped and awaited by end
	}
	for n := range 2 {
		v := &watcher{w: w, name: fmt.Sprintf("watcher-%d", n)}
		v.rng = w.rand(v.name)
		wg.Go(func() { v.run(stop) })                                         // stopped and awaited by end
		wg.Go(func() { w.newGrower(fmt.Sprintf("grower-%d", n)).grow(stop) }) // stopped and awaited by end
	}
	for n := range stayers {
		if w.plan.modes.local {
			v := w.newMover(fmt.Sprintf("stayer-%d", n), 5*tick)
			wg.Go(func() { v.stay(stop) }) // stopped and awaited by end
		}
	}
	return func() {
		close(stop)
		wg.Wait()
		w.judgeTally("requests that make a local session global", &w.upgrades)
		w.judgeTally("returns to the member at which a session became global", &w.returns)
	}
}
