package explore

import (
	"sync"
	"time"

	"github.com/gozkd/gozkd/server"
)

const (
	sampleEvery = 10 * time.Second
	maxSamples  = 360 // an hour
)

// sample is what the server was like at a moment.
type sample struct {
	Time     int64   `json:"time"` // Unix ms
	Znodes   int     `json:"znodes"`
	Bytes    int64   `json:"bytes"`
	Sessions int     `json:"sessions"`
	Changes  float64 `json:"changes"`  // per second since the sample before
	Requests float64 `json:"requests"` // likewise, of this server
}

// past keeps samples of the last hour, so that whoever opens the explorer sees them.
type past struct {
	server *server.Server
	timer  *time.Timer

	mu      sync.Mutex // guards the fields below, and makes stop wait
	stopped bool
	samples []sample
	before  server.Stats
	changed int64 // when a sample last saw another zxid, Unix ms; 0: not yet
}

func newPast(s *server.Server) *past {
	p := &past{server: s}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(time.Second, p.take) // until stop
	return p
}

func (p *past) take() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	p.timer.Reset(sampleEvery)
	now := p.server.Facts().Stats()
	s := sample{Time: time.Now().UnixMilli(), Znodes: now.Znodes, Bytes: now.DataBytes, Sessions: now.Sessions}
	if p.before.Uptime > 0 && now.Uptime > p.before.Uptime {
		seconds := (now.Uptime - p.before.Uptime).Seconds()
		s.Requests = max(0, float64(now.Received-p.before.Received)) / seconds // srst sets the count to 0
		if now.Zxid>>32 == p.before.Zxid>>32 {                                 // the same epoch
			s.Changes = float64(now.Zxid-p.before.Zxid) / seconds
		}
	}
	if p.before.Uptime > 0 && now.Zxid != p.before.Zxid {
		p.changed = s.Time
	}
	p.before = now
	p.samples = append(p.samples[max(0, len(p.samples)+1-maxSamples):], s)
}

// lastChange returns when a change was last seen, Unix ms; 0: not yet.
func (p *past) lastChange() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

func (p *past) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	p.timer.Stop()
}

// pastHour answers with the samples, the oldest first.
func (e *explorer) pastHour(*request) (any, error) {
	e.samples.mu.Lock()
	defer e.samples.mu.Unlock()
	return map[string]any{"samples": append([]sample{}, e.samples.samples...)}, nil
}
