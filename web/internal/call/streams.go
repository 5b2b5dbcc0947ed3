package call

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/web/internal/answer"
)

// Bounds on the events that are kept for streams that continue.
const (
	ringEvents = 1024      // of a watched path
	ringBytes  = 256 << 10 // of a watched path
	allBytes   = 64 << 20  // of all
	ringIdle   = time.Minute
	maxRings   = 1024 // of a session
)

// Watch is the subject of a stream: a znode, or with Recursive also everything below.
type Watch struct {
	Path      string
	Recursive bool
}

// streams holds the watches and rings of a session's streams. Streams with the same Watch share a
// ring.
//
// Invariants: a ring has every event since its first one, in order. After a moment in which events
// may have been missed, the ring has an event reset.
type streams struct {
	session *Session
	// changing is held while a watch is set or removed on the server, so that neither happens to
	// the watch of a new ring.
	changing sync.Mutex

	mu    sync.Mutex // guards the fields below, and the rings
	rings map[Watch]*ring
	over  bool
}

// ring holds the latest events of a Watch.
type ring struct {
	watch   Watch
	set     bool      // the server has the watch
	readers int       // streams
	left    time.Time // when the last stream ended
	events  []event   // the oldest first
	first   uint64    // the number of events[0]
	bytes   int
	changed chan struct{} // closed at the next event, or nil: nobody waits
	over    bool
}

type event struct{ id, text string }

func (t *streams) init(of *Session) { t.session, t.rings = of, make(map[Watch]*ring) }

// Stream is a reader of the events of a Watch. Only one goroutine may use it. Close must be called.
type Stream struct {
	streams *streams
	ring    *ring
	next    uint64 // the number of the next event
	missed  bool   // the next text is reset
	id      string // where the stream begins
}

// Open begins a stream. lastID is the id of the last event that the reader has seen of this Watch,
// or "". When Open returns, the server has the watch: a read afterwards sees every change without
// an event.
func (s *Session) Open(ctx context.Context, w Watch, lastID string) (*Stream, error) {
	t := &s.streams
	t.changing.Lock()
	defer t.changing.Unlock()
	t.mu.Lock()
	r := t.rings[w]
	if r == nil {
		if len(t.rings) >= maxRings || t.over {
			t.mu.Unlock()
			return nil, answer.Errorf(http.StatusServiceUnavailable, "%d paths are watched already: close other streams", maxRings)
		}
		// Ids of another ring for the same path must not be found in this one.
		r = &ring{watch: w, first: rand.Uint64N(1 << 40)}
		t.rings[w] = r
	}
	r.readers++
	set := r.set
	t.mu.Unlock()
	if !set {
		mode := proto.AddWatchPersistent
		if w.Recursive {
			mode = proto.AddWatchPersistentRecursive
		}
		if err := s.Client.AddWatch(ctx, w.Path, mode); err != nil {
			t.leave(r)
			return nil, err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !r.set {
		r.set = true
		t.push(r, event{}, s.Client.LastZxid()) // gives the stream an id to begin at
	}
	stream := &Stream{streams: t, ring: r, next: r.end()}
	if lastID == "" {
		stream.id = r.events[len(r.events)-1].id
		return stream, nil
	}
	i := slices.IndexFunc(r.events, func(e event) bool { return e.id == lastID })
	if stream.missed = i < 0; i >= 0 {
		stream.next = r.first + uint64(i) + 1
	}
	return stream, nil
}

func (r *ring) end() uint64 { return r.first + uint64(len(r.events)) }

// push appends an event to a ring. t.mu is held.
func (t *streams) push(r *ring, e event, zxid proto.Zxid) {
	e.id = fmt.Sprintf("0x%x-%x", uint64(zxid), r.end())
	if e.text != "" {
		e.text = "id: " + e.id + "\n" + e.text
	}
	p := t.session.pool
	r.events = append(r.events, e)
	r.bytes += len(e.text)
	p.kept.Add(int64(len(e.text)))
	for len(r.events) > 1 && (len(r.events) > ringEvents || r.bytes > ringBytes || p.kept.Load() > allBytes) {
		r.bytes -= len(r.events[0].text)
		p.kept.Add(-int64(len(r.events[0].text)))
		r.events[0] = event{}
		r.events = r.events[1:]
		r.first++
	}
	r.wake()
}

func (r *ring) wake() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

var names = map[proto.EventType]string{
	proto.EventCreated: "created", proto.EventDataChanged: "changed", proto.EventDeleted: "deleted", proto.EventChildrenChanged: "children",
}

// on takes an event of the client.
func (t *streams) on(e client.Event) {
	now := t.session.pool.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.Type == client.EventSession {
		for _, r := range t.rings {
			if (e.State == client.Connected || e.State == client.ReadOnly) && !e.CaughtUp {
				t.push(r, event{text: resetText}, max(e.Zxid, 0))
			}
			if e.State.Ended() {
				t.end(r)
			}
		}
		return
	}
	name, ok := names[e.Type]
	if !ok {
		return
	}
	data, err := json.Marshal(struct {
		Path string `json:"path"`
		Zxid string `json:"zxid"`
		Time int64  `json:"time"`
	}{e.Path, e.Zxid.String(), now.UnixMilli()})
	if err != nil {
		return // no value of these types
	}
	text := "event: " + name + "\ndata: " + string(data) + "\n\n"
	if r := t.rings[Watch{e.Path, false}]; r != nil {
		t.push(r, event{text: text}, e.Zxid)
	}
	for path := e.Path; e.Type != proto.EventChildrenChanged; path = proto.ParentPath(path) {
		if r := t.rings[Watch{path, true}]; r != nil {
			t.push(r, event{text: text}, e.Zxid)
		}
		if path == "/" {
			break
		}
	}
}

const resetText = "event: reset\ndata: {}\n\n"

// errOver means that the session of a stream has ended. The reader may open another.
var errOver = errors.New("the session of this stream has ended")

// Next waits for events and returns them as text of server-sent events. At the beginning it may
// return at once. The error is that of ctx, or the stream has ended.
func (s *Stream) Next(ctx context.Context) (string, error) {
	t, r := s.streams, s.ring
	for {
		t.mu.Lock()
		text := s.takeLocked()
		if text != "" {
			t.mu.Unlock()
			return text, nil
		}
		if r.over {
			t.mu.Unlock()
			return "", errOver
		}
		if r.changed == nil {
			r.changed = make(chan struct{})
		}
		changed := r.changed
		t.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// takeLocked returns the events that are due, at most about 64 KiB. t.mu is held.
func (s *Stream) takeLocked() string {
	var b strings.Builder
	r := s.ring
	if s.id != "" {
		b.WriteString("id: " + s.id + "\n\n")
		s.id = ""
	}
	if s.next < r.first || s.missed {
		s.missed, s.next = false, r.end()
		b.WriteString("id: " + r.events[len(r.events)-1].id + "\n" + resetText)
	}
	for ; s.next < r.end() && b.Len() < 64<<10; s.next++ {
		b.WriteString(r.events[s.next-r.first].text)
	}
	return b.String()
}

// Close ends the stream. Its ring stays for a while, so that the reader can continue.
func (s *Stream) Close() { s.streams.leave(s.ring) }

func (t *streams) leave(r *ring) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.readers--
	r.left = t.session.pool.Now()
}

// end ends the streams of a ring. t.mu is held.
func (t *streams) end(r *ring) {
	r.over = true
	t.forget(r)
	r.wake()
}

// forget removes a ring. t.mu is held.
func (t *streams) forget(r *ring) {
	if t.rings[r.watch] == r {
		delete(t.rings, r.watch)
		t.session.pool.kept.Add(-int64(r.bytes))
		r.bytes = 0
	}
}

// sweep removes rings without readers.
func (t *streams) sweep(now time.Time) {
	t.mu.Lock()
	var idle []*ring
	for _, r := range t.rings {
		if r.readers == 0 && now.Sub(r.left) >= ringIdle {
			idle = append(idle, r)
		}
	}
	t.mu.Unlock()
	for _, r := range idle {
		t.drop(r)
	}
}

// drop removes a ring and its watch, unless it has readers again.
func (t *streams) drop(r *ring) {
	t.changing.Lock()
	defer t.changing.Unlock()
	t.mu.Lock()
	if r.readers > 0 || t.rings[r.watch] != r {
		t.mu.Unlock()
		return
	}
	t.forget(r)
	t.mu.Unlock()
	kind := proto.WatcherPersistent
	if r.watch.Recursive {
		kind = proto.WatcherPersistentRecursive
	}
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	_ = t.session.Client.RemoveWatches(ctx, r.watch.Path, kind, true) // not set, or set by an Open that did not wait: no matter
}

// close ends all streams.
func (t *streams) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	for _, r := range t.rings {
		t.end(r)
	}
}
