package main

import (
	"context"
	"runtime"
	"time"
)

// As long as a processor is idle, each goroutine that becomes ready makes the runtime wake a thread that looks for more work, and during each sync
// of the log its monitor looks every 20 µs whether the processor is needed: most of what a write costs a server that has little to do beside it.
// With GOMAXPROCS 1 neither is so. Reads don't sync, and are answered sooner while a second thread keeps a processor awake.

const (
	// procsEvery is how often it is looked how busy the process is.
	procsEvery = 100 * time.Millisecond
	// With more than procsMore of one processor used there are to be all, with less than procsFewer one may do. With one less is used for
	// the same work, so they lie apart, and one is tried only after procsCalm looks in a row.
	procsMore  = 0.9
	procsFewer = 0.8
	procsCalm  = 10
	// One saves a write about twice of what it costs a read. So there must be one change for so many requests.
	procsRequests = 3
	// procsLoad is how many changes or requests there must be for a look to tell anything.
	procsLoad = 10
)

// tuneProcs sets GOMAXPROCS while ctx lasts: 1 while clients mostly write and one processor is enough, else the runtime's default. traffic is
// Server.Traffic.
func tuneProcs(ctx context.Context, traffic func() (requests, zxid int64)) {
	ticker := time.NewTicker(procsEvery)
	defer ticker.Stop()
	var p procs
	before, told := lookAt(traffic)
	for told {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		var now usage
		now, told = lookAt(traffic)
		switch one, changed := p.next(now.since(before)); {
		case changed && one:
			runtime.GOMAXPROCS(1)
		case changed:
			runtime.SetDefaultGOMAXPROCS() // as of now: what a container may use can change
		}
		before = now
	}
}

// usage is what the process has done and used since its start.
type usage struct {
	cpu               time.Duration // of all processors
	at                time.Time
	requests, changes int64
}

// work is what happened between two looks.
type work struct {
	procs             float64 // that were used
	requests, changes int64
}

// lookAt: told is false if the system does not tell CPU times.
func lookAt(traffic func() (requests, zxid int64)) (u usage, told bool) {
	u.cpu, told = cpuTime()
	u.requests, u.changes = traffic()
	u.at = time.Now()
	return u, told
}

func (u usage) since(before usage) work {
	return work{float64(u.cpu-before.cpu) / float64(u.at.Sub(before.at)), u.requests - before.requests, u.changes - before.changes}
}

// procs decides whether one processor is to do. The zero value has all of them.
type procs struct {
	one  bool
	calm int // looks in a row that spoke for one
}

// next is told what happened since the last look. changed: what it says is not what it said then.
func (p *procs) next(w work) (one, changed bool) {
	before := p.one
	writes := w.changes*procsRequests >= w.requests
	switch {
	case p.one:
		idle := w.requests < procsLoad
		p.one, p.calm = (writes || idle) && w.procs <= procsMore, 0
	case writes && w.changes >= procsLoad && w.procs < procsFewer:
		p.calm++
		p.one = p.calm == procsCalm
	default:
		p.calm = 0
	}
	return p.one, p.one != before
}
