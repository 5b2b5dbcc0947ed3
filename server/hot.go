package server

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// What is hot: the paths and the clients that most requests of the last seconds were about. The server keeps a sample of the requests, so
// what that costs does not grow with their number: every request while there are few of them, and one in 2, 4, 8 … on average when there
// are more. Which one is left to chance, each request for itself, and each that is kept counts for as many as it stands for, so that the
// rates are right on average whatever clients do.

const (
	// hotWindow is for how many whole seconds requests are remembered.
	hotWindow = 10
	// hotSamples bounds those of a second, and so the memory: about 1,000 × 11 × (60 bytes and the path).
	hotSamples = 1024
	// hotPathBytes is how much of a path is remembered.
	hotPathBytes = 256
	// hotMultiBytes: a multi that is longer counts for its client, and for no path.
	hotMultiBytes = 4 << 10
	// hotListed is how many paths and clients are told.
	hotListed = 20
)

// HotSpots are the paths and clients that a server had most requests for and of, the hottest first, at most 20 of each. Those that are equally
// hot are in the order of their paths and sessions.
//
// The rates are requests per second over the last Window whole seconds, 10 at most. They are exact up to about a thousand requests per second, and
// estimated from a sample beyond that: a path with a hundredth of all requests is then off by a tenth or so. Reads are requests that change nothing,
// syncs included. Pings, authentication and the begin and end of sessions don't count.
type HotSpots struct {
	Paths   []HotPath   `json:"paths"`
	Clients []HotClient `json:"clients"`
	Window  int         `json:"window_s"` // less than 10 in the first seconds of a server
}

// HotPath is a path as clients named it, whether or not there is such a znode, cut off behind 256 bytes. What a multi does to several paths counts
// for each of them.
type HotPath struct {
	Path   string  `json:"path"`
	Reads  float64 `json:"reads"` // per second
	Writes float64 `json:"writes"`
}

// HotClient is a session. Its address is empty if it is not connected to this server any more.
type HotClient struct {
	Address string  `json:"address"`
	Session string  `json:"session"` // as 0x…
	Reads   float64 `json:"reads"`   // requests per second
	Writes  float64 `json:"writes"`
}

// Hot returns what is hot on this server: requests of clients that are connected here. The caller owns the result. It sorts about 10,000 samples
// at most, and holds no lock that requests wait for but the one that samples need.
func (s *Server) Hot() HotSpots {
	samples, window := s.hot.read(s.hotSecond())
	// Requests are added up here, and become rates below.
	paths, clients := make(map[string]*HotPath), make(map[proto.SessionID]*HotClient)
	for i := range samples {
		sample := &samples[i]
		client := clients[sample.session]
		if client == nil {
			client = &HotClient{Session: sample.session.String()}
			clients[sample.session] = client
		}
		reads, writes := sample.counts()
		if sample.first {
			client.Reads, client.Writes = client.Reads+reads, client.Writes+writes
		}
		if sample.path == "" {
			continue
		}
		path := paths[sample.path]
		if path == nil {
			path = &HotPath{Path: sample.path}
			paths[sample.path] = path
		}
		path.Reads, path.Writes = path.Reads+reads, path.Writes+writes
	}
	hot := HotSpots{Paths: make([]HotPath, 0, len(paths)), Clients: make([]HotClient, 0, len(clients)), Window: window}
	seconds := float64(window) // not 0 where there are samples
	for _, p := range paths {
		hot.Paths = append(hot.Paths, HotPath{p.Path, p.Reads / seconds, p.Writes / seconds})
	}
	slices.SortFunc(hot.Paths, func(a, b HotPath) int {
		return cmp.Or(cmp.Compare(b.Reads+b.Writes, a.Reads+a.Writes), cmp.Compare(a.Path, b.Path))
	})
	hot.Paths = slices.Clip(hot.Paths[:min(len(hot.Paths), hotListed)])
	s.connMu.Lock()
	for id, c := range clients {
		if conn := s.bySession[id]; conn != nil {
			c.Address = conn.nc.RemoteAddr().String()
		}
		hot.Clients = append(hot.Clients, HotClient{c.Address, c.Session, c.Reads / seconds, c.Writes / seconds})
	}
	s.connMu.Unlock()
	slices.SortFunc(hot.Clients, func(a, b HotClient) int {
		return cmp.Or(cmp.Compare(b.Reads+b.Writes, a.Reads+a.Writes), cmp.Compare(a.Session, b.Session))
	})
	hot.Clients = slices.Clip(hot.Clients[:min(len(hot.Clients), hotListed)])
	return hot
}

// String returns the line that the hotp word answers, without its end.
func (h HotSpots) String() string {
	b, err := json.Marshal(h)
	if err != nil { // rates are finite
		return fmt.Sprintf("{%q: %q}", "error", err)
	}
	return printableJSON(b)
}

// hotSecond counts the seconds since the server was begun, by a clock that does not jump, from 1 on.
func (s *Server) hotSecond() int64 { return int64(time.Since(s.begun)/time.Second) + 1 }

// hot is the sample.
type hot struct {
	every atomic.Int32 // one request in so many is kept; a power of 2, or 0 for 1

	mu      sync.Mutex // guards the rest; a leaf
	seconds [hotWindow + 1]hotSeconds
}

// hotSeconds is what is kept of one second.
type hotSeconds struct {
	second  int64
	samples []hotSample
}

type hotSample struct {
	path    string // "" if there is none
	session proto.SessionID
	weight  int32 // requests that it stands for
	write   bool
	first   bool // of the samples of its request: it counts for the client
}

func (h *hotSample) counts() (reads, writes float64) {
	if h.write {
		return 0, float64(h.weight)
	}
	return float64(h.weight), 0
}

// hotSkip is a connection's part of the sampling: how many requests it has yet to pass over. It belongs to c.mu. That each request is kept by
// chance makes the number to pass over a geometric one, and such a number has no memory: it may be drawn anew at any time.
type hotSkip struct{ left, every int32 }

// pass reports whether the next request is one of those that are not kept, which is all that most requests cost.
func (k *hotSkip) pass(h *hot) bool {
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

func (k *hotSkip) draw() {
	k.left = 0
	if k.every > 1 {
		// 1-U is above 0. At the most that is 2^30 requests: more would not fit.
		k.left = int32(min(math.Log(1-rand.Float64())/math.Log1p(-1/float64(k.every)), 1<<30))
	}
}

// noteHot keeps a request, or passes it over. body is the request behind its header, of which nothing is kept but copies. c.mu is held.
func (c *conn) noteHot(op proto.OpCode, body []byte) {
	info := op.Info()
	if info.Session || c.hot.pass(&c.server.hot) {
		return
	}
	sample := hotSample{session: c.session, weight: max(1, c.hot.every), write: info.Write, first: true}
	c.server.hot.keep(c.server.hotSecond(), sample, hotPaths(op, body))
}

// hotPaths returns the paths that a request is about.
func hotPaths(op proto.OpCode, body []byte) []string {
	d := jute.NewDecoder(body)
	d.AliasStrings()
	switch op.Info().Path {
	case proto.PathFirst:
		if path := d.NullString(); d.Err() == nil && path != nil {
			return []string{hotPath(*path)}
		}
	case proto.PathEach:
		var m proto.MultiRequest
		if len(body) > hotMultiBytes || m.Decode(&d, op) != nil {
			return nil
		}
		paths := make([]string, len(m.Ops))
		for i := range m.Ops {
			paths[i] = hotPath(m.Ops[i].Path)
		}
		return paths
	}
	return nil
}

// hotPath copies as much of a path as is remembered.
func hotPath(path string) string {
	if len(path) > hotPathBytes {
		return strings.ToValidUTF8(path[:hotPathBytes], "") + "…"
	}
	return strings.Clone(path)
}

// keep takes a sample for each of the paths, or one without a path if there are none.
func (h *hot) keep(second int64, sample hotSample, paths []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := h.at(second)
	if len(paths) == 0 {
		paths = []string{""}
	}
	for _, path := range paths {
		sample.path = path
		at.samples = append(at.samples, sample)
		sample.first = false
		if len(at.samples) == hotSamples {
			at.halve()
			h.every.Store(2 * max(1, h.every.Load()))
		}
	}
}

// at returns the place for a second. With each new one it is decided anew which part of the requests is kept.
func (h *hot) at(second int64) *hotSeconds {
	at := &h.seconds[second%int64(len(h.seconds))]
	if at.second == second {
		return at
	}
	var before float64 // requests, or paths of them, of the second before
	if last := &h.seconds[(second+hotWindow)%int64(len(h.seconds))]; last.second == second-1 {
		for i := range last.samples {
			before += float64(last.samples[i].weight)
		}
	}
	every := int32(1)
	for before/float64(every) > hotSamples/2 && every < 1<<20 {
		every *= 2
	}
	h.every.Store(every)
	clear(at.samples) // the paths
	at.second, at.samples = second, at.samples[:0]
	return at
}

// tick begins a second without waiting for a request: after a busy one, the next that is kept may be far.
func (h *hot) tick(second int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at(second)
}

// halve gives each sample an even chance to stay and to count for two.
func (h *hotSeconds) halve() {
	kept := h.samples[:0]
	for _, sample := range h.samples {
		if rand.Uint32()&1 == 0 {
			sample.weight = min(2*sample.weight, 1<<30)
			kept = append(kept, sample)
		}
	}
	clear(h.samples[len(kept):])
	h.samples = kept
}

// read returns the samples of the whole seconds before this one, and how many seconds they are of: since the server began, at most hotWindow.
func (h *hot) read(second int64) (samples []hotSample, window int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.seconds {
		if at := &h.seconds[i]; at.second > 0 && at.second < second && at.second >= second-hotWindow {
			samples = append(samples, at.samples...)
		}
	}
	return samples, int(min(second-1, hotWindow))
}
