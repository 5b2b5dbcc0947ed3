package server_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// pipeline is a client that always has writes in flight on a znode of its own, and checks every
// reply: each write must be applied once, in order, and the connection must not break.
type pipeline struct {
	*raw
	path     string
	stopping atomic.Bool
	ending   sync.WaitGroup
	sent     int32
	answered atomic.Int32
	slowest  time.Duration // between two replies
}

var (
	burst = exhaustive.Or(2, 8) // writes at once
	pause = exhaustive.Or(100*time.Millisecond, 20*time.Millisecond)
)

const (
	ahead   = 200 // writes without a reply
	firstID = 10
)

// pipe starts a pipeline on a member.
func (e *ensemble) pipe(id int, path string) *pipeline {
	e.t.Helper()
	p := &pipeline{raw: e.connect(id, 30*time.Second), path: path}
	if h, _ := p.call(1, proto.OpCreate, create{path: path}); h.Err != proto.OK {
		e.t.Fatalf("create %s: %v", path, h.Err)
	}
	credit := make(chan struct{}, ahead)
	p.ending.Go(func() { p.write(credit) }) // ends when stop says so, or the connection is lost
	p.ending.Go(func() { p.read(credit) })  // ends with the last reply
	e.t.Cleanup(func() {
		p.stopping.Store(true)
		_ = p.nc.Close()
		p.ending.Wait()
	})
	return p
}

func (p *pipeline) write(credit chan struct{}) {
	defer close(credit)
	for !p.stopping.Load() {
		var b []byte
		for range burst {
			r := &proto.SetDataRequest{Path: p.path, Data: fmt.Append(nil, p.sent), Version: p.sent}
			b = append(b, frame(firstID+p.sent, proto.OpSetData, r)...)
			p.sent++
			credit <- struct{}{}
		}
		if _, err := p.nc.Write(b); err != nil {
			return
		}
		time.Sleep(pause)
	}
}

func (p *pipeline) read(credit chan struct{}) {
	last := time.Now()
	for range credit {
		b := p.tryRecv()
		if p.stopping.Load() && b == nil {
			return // the test has failed, or it wants the connection to end
		}
		n := p.answered.Load()
		if b == nil {
			p.t.Errorf("%s: the connection was closed after %d replies", p.path, n)
			p.stopping.Store(true)
			for range credit { // lets write end
			}
			return
		}
		d := jute.NewDecoder(b)
		var h proto.ReplyHeader
		var st proto.Stat
		h.Decode(&d)
		if h.Err == proto.OK {
			st.Decode(&d)
		}
		if h.Xid != firstID+n || h.Err != proto.OK || st.Version != n+1 {
			p.t.Errorf("%s: reply %d: xid %d, %v, version %d", p.path, n, h.Xid-firstID, h.Err, st.Version)
		}
		p.slowest = max(p.slowest, time.Since(last))
		last = time.Now()
		p.answered.Add(1)
	}
}

// stop ends the pipeline after all writes are answered. The znode's version shows whether a write
// was applied twice.
func (p *pipeline) stop() {
	p.t.Helper()
	p.stopping.Store(true)
	p.ending.Wait()
	if n := p.answered.Load(); n != p.sent {
		p.t.Errorf("%s: %d writes were sent and %d answered", p.path, p.sent, n)
	}
	if p.t.Failed() {
		return
	}
	h, d := p.call(2, proto.OpGetData, &proto.PathWatchRequest{Path: p.path})
	var r proto.DataResponse
	r.Decode(d)
	if h.Err != proto.OK || r.Stat.Version != p.sent {
		p.t.Errorf("%s: %v, version %d after %d writes", p.path, h.Err, r.Stat.Version, p.sent)
	}
	p.t.Logf("%s: %d writes, %v between two replies at most", p.path, p.sent, p.slowest)
}
