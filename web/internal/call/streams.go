package call

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/wakeup"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/web/internal/answer"
)

// Bounds on the events that are kept for slow readers.
const (
	ringEvents = 1024      // of a watched path
	ringBytes  = 256 << 10 // of a watched path
	allBytes   = 64 << 20  // of all
	maxRings   = 1024      // of a session
)

// keepAlive is how often a stream without events has a sign of life.
const keepAlive = 15 * time.Second

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
	// the watch of a new ring. It guards ring.set.
	changing sync.Mutex

	mu    sync.Mutex // guards the fields below, and the rings
	rings map[Watch]*ring
	over  bool
}

type ring struct {
	watch   Watch
	set     bool // the server has the watch
	readers int  // streams
	end     position
	events  []event // the oldest first
	first   uint64  // the number of events[0]
	bytes   int
	changed wakeup.Broadcast // sent at each event, and at the end
	over    bool
}

// position is how far a reader has read, on any member: all changes up to a zxid or, if sum is not
// 0, those of its events that have this checksum. So a transaction can be continued midway.
type position struct {
	zxid proto.Zxid
	sum  uint32
}

// String returns the id of the last event before the position.
func (p position) String() string {
	if p.sum == 0 {
		return fmt.Sprintf("0x%x", uint64(p.zxid))
	}
	return fmt.Sprintf("0x%x-%08x", uint64(p.zxid), p.sum)
}

func parsePosition(id string) (p position, ok bool) {
	_, _ = fmt.Sscanf(id, "0x%x-%x", &p.zxid, &p.sum) // String tells
	return p, p.String() == id
}

// add moves the position behind an event, and returns its text. ms is its Unix time, 0 if unknown.
func (p *position) add(zxid proto.Zxid, typ proto.EventType, path string, ms int64) string {
	if zxid != p.zxid {
		*p = position{zxid: zxid}
	}
	p.sum = max(1, crc32.Update(p.sum, crc32.IEEETable, []byte(names[typ]+path)))
	data, _ := json.Marshal(struct { // these types have no value that fails
		Path string `json:"path"`
		Zxid string `json:"zxid"`
		Time int64  `json:"time,omitempty"`
	}{path, zxid.String(), ms})
	return fmt.Sprintf("id: %v\nevent: %s\ndata: %s\n\n", p, names[typ], data)
}

// event is an event as text. A reset has the zxid 0.
type event struct {
	zxid proto.Zxid
	text string
}

// Stream is a reader of the events of a Watch. Only one goroutine may use it. Close must be called.
type Stream struct {
	streams *streams
	ring    *ring
	next    uint64     // the number of the next event
	after   proto.Zxid // events up to it are in text
	text    string     // comes next
}

// Open begins a stream. lastID is the last event that the reader has seen of this Watch, or "".
// When Open returns, the server has the watch: a later read sees each change without an event.
func (s *Session) Open(ctx context.Context, w Watch, lastID string) (*Stream, error) {
	r, err := s.streams.join(ctx, w)
	if err != nil {
		return nil, err
	}
	stream := &Stream{streams: &s.streams, ring: r}
	s.streams.mu.Lock()
	stream.next = r.next()
	s.streams.mu.Unlock()
	begin := position{zxid: s.Client.LastZxid()}
	if lastID == "" {
		stream.text = "id: " + begin.String() + "\n\n"
	} else if !stream.resume(ctx, lastID) {
		stream.text = "id: " + begin.String() + "\n" + resetText
	}
	return stream, nil
}

// join returns the ring of a Watch, which the server has, with one more reader.
func (t *streams) join(ctx context.Context, w Watch) (*ring, error) {
	t.changing.Lock()
	defer t.changing.Unlock()
	t.mu.Lock()
	r := t.rings[w]
	if r == nil {
		if len(t.rings) >= maxRings || t.over {
			t.mu.Unlock()
			return nil, answer.Errorf(http.StatusServiceUnavailable, "%d paths are watched already: close other streams", maxRings)
		}
		r = &ring{watch: w}
		t.rings[w] = r
	}
	r.readers++
	t.mu.Unlock()
	if !r.set {
		mode := proto.AddWatchPersistent
		if w.Recursive {
			mode = proto.AddWatchPersistentRecursive
		}
		if err := t.session.Client.AddWatch(ctx, w.Path, mode); err != nil {
			t.leave(r)
			return nil, err
		}
		r.set = true
	}
	return r, nil
}

// resume begins with the events after an id of any member, and returns false if it cannot.
func (s *Stream) resume(ctx context.Context, lastID string) bool {
	last, ok := parsePosition(lastID)
	session := s.streams.session
	if ok && last.zxid > session.Client.LastZxid() { // this member may be behind another
		_, err := session.Client.Sync(ctx, s.ring.watch.Path)
		ok = err == nil
	}
	if !ok {
		return false
	}
	q := proto.SetWatchesRequest{RelativeZxid: last.zxid, Persistent: []string{s.ring.watch.Path}}
	if s.ring.watch.Recursive {
		q.Persistent, q.PersistentRecursive = nil, q.Persistent
	}
	at := position{zxid: last.zxid}
	if last.sum != 0 {
		q.RelativeZxid--
	}
	var text strings.Builder
	found := last.sum == 0
	s.after, ok = session.pool.Missed(&session.who, &q, func(zxid proto.Zxid, typ proto.EventType, path string) {
		switch next := at.add(zxid, typ, path, 0); {
		case !found:
			found = at == last
		case text.Len() <= ringBytes:
			text.WriteString(next)
		}
	})
	s.text = text.String()
	return ok && found && text.Len() <= ringBytes
}

func (r *ring) next() uint64 { return r.first + uint64(len(r.events)) }

// push appends an event to a ring. t.mu is held.
func (t *streams) push(r *ring, e event) {
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
	r.changed.Send()
}

var names = map[proto.EventType]string{
	proto.EventCreated: "created", proto.EventDataChanged: "changed", proto.EventDeleted: "deleted", proto.EventChildrenChanged: "children",
}

func (t *streams) on(e client.Event) {
	now := time.Now().UnixMilli()
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.Type == client.EventSession {
		for _, r := range t.rings {
			if (e.State == client.Connected || e.State == client.ReadOnly) && !e.CaughtUp {
				t.push(r, event{text: resetText})
			}
			if e.State.Ended() {
				t.end(r)
			}
		}
		return
	}
	if names[e.Type] == "" {
		return
	}
	tell := func(w Watch) {
		if r := t.rings[w]; r != nil {
			t.push(r, event{e.Zxid, r.end.add(e.Zxid, e.Type, e.Path, now)})
		}
	}
	tell(Watch{e.Path, false})
	for path := e.Path; e.Type != proto.EventChildrenChanged; path = proto.ParentPath(path) {
		if tell(Watch{path, true}); path == "/" {
			break
		}
	}
}

const resetText = "event: reset\ndata: {}\n\n"

// errOver means that the session of a stream has ended. The reader may open another.
var errOver = errors.New("the session of this stream has ended")

// Next waits for events, or for a while, and returns them as server-sent events, or a sign of life;
// at the beginning perhaps at once. The error is that of ctx, or the stream has ended.
func (s *Stream) Next(ctx context.Context) (string, error) {
	t, r, quiet := s.streams, s.ring, time.After(keepAlive)
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
		changed := r.changed.Next()
		t.mu.Unlock()
		select {
		case <-changed:
		case <-quiet:
			return s.beat(ctx), nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// takeLocked returns the events that are due, at most about 64 KiB. t.mu is held.
func (s *Stream) takeLocked() string {
	var b strings.Builder
	r := s.ring
	b.WriteString(s.text)
	if s.text = ""; s.next < r.first {
		s.next = r.next()
		b.WriteString("id: " + r.end.String() + "\n" + resetText)
	}
	for ; s.next < r.next() && b.Len() < 64<<10; s.next++ {
		if e := r.events[s.next-r.first]; e.zxid == 0 || e.zxid > s.after {
			b.WriteString(e.text)
		}
	}
	return b.String()
}

// beat returns a text that keeps a stream without events alive. Its id, if it has one, says that
// nothing was missed until now: later the history may not reach back to the last event.
func (s *Stream) beat(ctx context.Context) string {
	t := s.streams
	now := position{zxid: t.session.Client.LastZxid()}
	err := t.session.Client.AwaitEvents(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil || s.next < s.ring.next() || s.text != "" || now.zxid <= max(s.ring.end.zxid, s.after) {
		return ": \n\n"
	}
	return "id: " + now.String() + "\n\n"
}

// Close ends the stream.
func (s *Stream) Close() {
	s.streams.changing.Lock()
	defer s.streams.changing.Unlock()
	s.streams.leave(s.ring)
}

// end ends the streams of a ring. t.mu is held.
func (t *streams) end(r *ring) {
	r.over = true
	t.forget(r)
	r.changed.Send()
}

// forget removes a ring. t.mu is held.
func (t *streams) forget(r *ring) {
	if t.rings[r.watch] == r {
		delete(t.rings, r.watch)
		t.session.pool.kept.Add(-int64(r.bytes))
		r.bytes = 0
	}
}

// leave removes a reader and, with the last one, the ring and its watch. t.changing is held.
func (t *streams) leave(r *ring) {
	t.mu.Lock()
	if r.readers--; r.readers > 0 || t.rings[r.watch] != r {
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

func (t *streams) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	for _, r := range t.rings {
		t.end(r)
	}
}
