package meter

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
)

const (
	// sampleWindow is for how many whole seconds samples are kept.
	sampleWindow = 10
	// maxSamples bounds the samples of a second, and so the memory: about 1,000 × 11 × (60 bytes
	// and the path).
	maxSamples = 1024
	// maxSampledPath is how many bytes of a path are kept.
	maxSampledPath = 256
	// maxSampledMulti: a multi with more bytes counts for its client, and for no path.
	maxSampledMulti = 4 << 10
	// maxListed is how many paths and clients are listed.
	maxListed = 20
)

// HotSampler keeps a sample of the requests of the last seconds, from which it derives the paths
// and the clients with the most requests. The cost does not grow with the number of requests: the
// sampler keeps every request while there are few, and one in 2, 4, 8 … on average when there are
// more. Each request is drawn independently, and each sample counts for as many requests as it
// stands for, so the rates are right on average whatever clients do.
//
// HotSampler is safe for concurrent use.
type HotSampler struct {
	every atomic.Int32 // one request in this many is kept; a power of 2, or 0 for 1
	start time.Time    // set before the first request

	mu      sync.Mutex // guards the rest; a leaf
	seconds [sampleWindow + 1]sampledSecond
}

type sampledSecond struct {
	second  int64
	samples []sample
}

type sample struct {
	path    string // "" if there is none
	session proto.SessionID
	weight  int32 // requests that it stands for
	write   bool
	first   bool // of the samples of its request: it counts for the client
}

func (s *sample) counts() (reads, writes float64) {
	if s.write {
		return 0, float64(s.weight)
	}
	return float64(s.weight), 0
}

// SampleSkip is a connection's part of the sampling: how many requests are yet to be left out.
// SampleSkip is not safe for concurrent use. Since each request is drawn independently, this number
// is geometrically distributed, and may be drawn anew at any time.
type SampleSkip struct{ left, every int32 }

// skip reports whether to leave the next request out of the sample. That is all most requests pay.
func (k *SampleSkip) skip(h *HotSampler) bool {
	if every := h.every.Load(); k.every != every {
		k.every = every
		k.draw()
	}
	if k.left > 0 {
		k.left--
		return true
	}
	k.draw()
	return false
}

func (k *SampleSkip) draw() {
	k.left = 0
	if k.every > 1 {
		// 1-U is above 0. The bound is the most that fits.
		k.left = int32(min(math.Log(1-rand.Float64())/math.Log1p(-1/float64(k.every)), 1<<30))
	}
}

// Start sets the beginning of the first second, by a clock that does not jump.
func (h *HotSampler) Start(at time.Time) { h.start = at }

// now returns the number of the present second, from 1 on.
func (h *HotSampler) now() int64 { return int64(time.Since(h.start)/time.Second) + 1 }

// Sample keeps a request of a session, or leaves it out. body follows the request's header; only
// copies of its parts are kept.
func (h *HotSampler) Sample(k *SampleSkip, session proto.SessionID, op proto.OpCode, body []byte) {
	info := op.Info()
	if info.Session || k.skip(h) {
		return
	}
	h.keep(sample{session: session, weight: max(1, k.every), write: info.Write, first: true}, samplePaths(op, body))
}

// keep adds a sample for each of the paths, or a sample without a path if there are none.
func (h *HotSampler) keep(s sample, paths []string) {
	second := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	at := h.at(second)
	if len(paths) == 0 {
		paths = []string{""}
	}
	for _, path := range paths {
		s.path = path
		at.samples = append(at.samples, s)
		s.first = false
		if len(at.samples) == maxSamples {
			at.halve()
			h.every.Store(2 * max(1, h.every.Load()))
		}
	}
}

// at returns the samples of a second. Each new second decides anew which part of the requests is
// kept. h.mu is held.
func (h *HotSampler) at(second int64) *sampledSecond {
	at := &h.seconds[second%int64(len(h.seconds))]
	if at.second == second {
		return at
	}
	var before float64 // requests, or paths of them, in the previous second
	if last := &h.seconds[(second+sampleWindow)%int64(len(h.seconds))]; last.second == second-1 {
		for i := range last.samples {
			before += float64(last.samples[i].weight)
		}
	}
	every := int32(1)
	for before/float64(every) > maxSamples/2 && every < 1<<20 {
		every *= 2
	}
	h.every.Store(every)
	clear(at.samples) // releases the paths
	at.second, at.samples = second, at.samples[:0]
	return at
}

// Tick begins a second without waiting for a request: after a busy second, the next request that is
// kept may be far away.
func (h *HotSampler) Tick() {
	second := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at(second)
}

// halve keeps each sample with a probability of one half and doubles its weight.
func (h *sampledSecond) halve() {
	kept := h.samples[:0]
	for _, s := range h.samples {
		if rand.Uint32()&1 == 0 {
			s.weight = min(2*s.weight, 1<<30)
			kept = append(kept, s)
		}
	}
	clear(h.samples[len(kept):])
	h.samples = kept
}

// read returns the samples of the whole seconds before the present second, and over how many
// seconds they extend: since the start, at most sampleWindow.
func (h *HotSampler) read() (samples []sample, window int) {
	second := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.seconds {
		if at := &h.seconds[i]; at.second > 0 && at.second < second && at.second >= second-sampleWindow {
			samples = append(samples, at.samples...)
		}
	}
	return samples, int(min(second-1, sampleWindow))
}

// Spots returns the hottest paths and clients. address returns the address of a session's client,
// or "" if it is not connected. Spots sorts about 10,000 samples at most, no request waits for it.
func (h *HotSampler) Spots(address func(proto.SessionID) string) facts.HotSpots {
	samples, window := h.read()
	type client struct {
		id            proto.SessionID
		reads, writes float64
	}
	paths, clients := make(map[string]*facts.HotPath), make(map[proto.SessionID]*client)
	for i := range samples {
		s := &samples[i]
		reads, writes := s.counts()
		if clients[s.session] == nil {
			clients[s.session] = &client{id: s.session}
		}
		if c := clients[s.session]; s.first {
			c.reads, c.writes = c.reads+reads, c.writes+writes
		}
		if s.path == "" {
			continue
		}
		if paths[s.path] == nil {
			paths[s.path] = &facts.HotPath{Path: s.path}
		}
		p := paths[s.path]
		p.Reads, p.Writes = p.Reads+reads, p.Writes+writes
	}
	seconds := float64(window) // not 0 if there are samples
	spots := facts.HotSpots{Paths: make([]facts.HotPath, 0, len(paths)), Clients: make([]facts.HotClient, 0, min(len(clients), maxListed)), Window: window}
	for _, p := range paths {
		spots.Paths = append(spots.Paths, facts.HotPath{Path: p.Path, Reads: p.Reads / seconds, Writes: p.Writes / seconds})
	}
	sort.Slice(spots.Paths, func(i, j int) bool {
		a, b := spots.Paths[i], spots.Paths[j]
		return cmp.Or(cmp.Compare(b.Reads+b.Writes, a.Reads+a.Writes), cmp.Compare(a.Path, b.Path)) < 0
	})
	spots.Paths = slices.Clip(spots.Paths[:min(len(spots.Paths), maxListed)])
	list := slices.SortedFunc(maps.Values(clients), func(a, b *client) int {
		return cmp.Or(cmp.Compare(b.reads+b.writes, a.reads+a.writes), cmp.Compare(uint64(a.id), uint64(b.id)))
	})
	for _, c := range list[:min(len(list), maxListed)] {
		spots.Clients = append(spots.Clients, facts.HotClient{
			Address: address(c.id), Session: c.id.String(), Reads: c.reads / seconds, Writes: c.writes / seconds,
		})
	}
	return spots
}
