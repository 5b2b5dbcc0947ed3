package link

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/internal/rawio"
	"github.com/gozkd/gozkd/server/internal/bounds"
)

// Link is the server's end of a client's connection: the socket, with or without TLS, the output
// that waits to be sent, the end of the connection, and the memory that these charge to
// Host.Memory. A Link knows nothing of requests.
//
// One goroutine, the reader, reads the link and waits for the client. A parked link has no reader
// until its client is no longer quiet or the link ends. At most one goroutine at a time writes;
// then flushing is set. Any goroutine that holds mu may append output or end the link.
//
// Invariants: output leaves in the order in which it was appended. A closed link has no output and
// charges nothing. When a goroutine waits for the client, all that the link holds is charged.
type Link struct {
	transport
	hearing
	host  *Host
	owner Owner
	place *bounds.Place // of the frame that is read or handled, or nil; owned by the reader

	mu   sync.Mutex // guards all below, and the owner's fields under it
	room sync.Cond  // signalled when output is sent, by Wake, and when the link closes

	// Out may be appended to. Flush or FlushAsync must follow.
	Out        Output
	flushing   bool // a goroutine writes to the socket
	closeAfter bool // close when out is sent
	closed     bool
	socketOpen bool // closed because out was sent; closeSocket is still to be called
	parked     bool
	parkedAs   int32 // the socket's descriptor; 0: the link was never parked
	memory     account
}

// Owner handles the requests of a link's client.
type Owner interface {
	// Backlog returns how many bytes the server holds for the client until it answers, besides the
	// input. mu of the link is held.
	Backlog() int64
	// Resume is called on a new goroutine, the reader, after Park.
	Resume()
}

// Host holds the state that all links of a server share.
type Host struct {
	Memory    bounds.Memory // of all links
	lingering lingering
	parking   parking
	many      atomic.Bool  // links: see SetCount
	large     atomic.Int64 // how many buffers of InputBytes the inputs hold
	// A moment on two clocks: HostConfig.Now, which may jump, and the runtime's. Links keep times
	// as durations since that moment.
	wall, mono time.Time
	HostConfig
}

// HostConfig has the functions of the server that links call, from any goroutine.
type HostConfig struct {
	Now func() time.Time
	// Patience returns how long a client may take to read its last reply.
	Patience func() time.Duration
	// Relieve closes links if Memory is exceeded. It is called while no mu of a link is held.
	Relieve func()
	// Writes has the places for long frames.
	Writes *bounds.Writes
	// Goroutines awaits the goroutines of links. Each ends by itself, or when its link is closed.
	Goroutines *sync.WaitGroup
}

// Init must be called before any other method, and before links are made.
func (h *Host) Init(cfg HostConfig) {
	h.HostConfig, h.wall, h.mono = cfg, cfg.Now(), time.Now()
	h.lingering.conns = make(map[net.Conn]struct{})
}

// SetCount says how many links there are: many, if large input buffers of all of them would take
// more than an eighth of the memory for output that waits for clients. Then readers hold little.
func (h *Host) SetCount(links int) { h.many.Store(int64(links)*InputBytes > h.Memory.Limit.Load()/8) }

// Many reports whether there are many links.
func (h *Host) Many() bool { return h.many.Load() }

// LargeInputs returns how many buffers of InputBytes the inputs hold.
func (h *Host) LargeInputs() int { return int(h.large.Load()) }

// Stop closes the sockets that linger, and those to come at once. No link is parked any more.
func (h *Host) Stop() {
	h.lingering.end()
	h.parking.end()
}

type transport struct {
	nc  net.Conn
	raw *rawio.Conn // nil if nc is not a socket
	tls *tlsLayer   // nil: none, or the handshake is not complete; set with mu held, before the link is served
}

// Init must be called before any other method.
func (l *Link) Init(host *Host, owner Owner, nc net.Conn) {
	l.host, l.owner, l.nc, l.raw = host, owner, nc, rawio.NewConn(nc)
	l.arrived.Store(-1)
	l.room.L = &l.mu
}

// Lock acquires mu, which guards Out, the end of the link, and the owner's fields under it.
func (l *Link) Lock() { l.mu.Lock() }

// Unlock releases mu.
func (l *Link) Unlock() { l.mu.Unlock() }

// Wake wakes Await. l.mu is held.
func (l *Link) Wake() { l.room.Broadcast() }

// NetConn returns the connection that the link was made of. It must neither be read nor written.
func (l *Link) NetConn() net.Conn { return l.nc }

// IsSocket reports whether the link is a socket whose reader needs no buffer while it waits.
func (l *Link) IsSocket() bool { return l.raw != nil }

// Close closes the connection; its session lives on. Close does not wait.
func (l *Link) Close() {
	l.mu.Lock()
	l.CloseLocked()
	l.mu.Unlock()
}

// Park lets the reader end: Owner.Resume is called when bytes come, or when the link ends. Park
// returns false if the reader must go on: the link is no socket, it ends, TLS holds a part of a
// record, or the system cannot wait for it. The reader calls Park when it holds no input.
func (l *Link) Park() bool {
	if l.raw == nil || l.tls != nil && !l.tls.drained {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.parked = !l.Ending() && l.host.parking.add(l)
	return l.parked
}

// unpark starts a reader if the link is parked. l.mu is held.
func (l *Link) unpark() {
	if l.parked {
		l.parked = false
		l.host.parking.remove(l)
		l.host.Goroutines.Go(l.owner.Resume) // ends as any reader
	}
}

// IsClosed reports whether the link is closed. l.mu is not held.
func (l *Link) IsClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// ClosedLocked is IsClosed while l.mu is held.
func (l *Link) ClosedLocked() bool { return l.closed }

// CloseLocked is Close while l.mu is held.
func (l *Link) CloseLocked() { _ = l.EndOutput()(false) }

// EndOutput marks the link as closed and drops its output. The returned function closes the socket,
// and does not block. With linger it leaves the socket to Linger if it returns true. l.mu must be
// held when EndOutput and when the returned function is called.
func (l *Link) EndOutput() (closeSocket func(linger bool) bool) {
	if l.closed && !l.socketOpen {
		return func(bool) bool { return false }
	}
	whole := l.socketOpen || l.Out.sealed == nil && !l.flushing // no record is sent in part
	l.closed, l.socketOpen = true, false
	l.Out = Output{}
	l.Recount(true)
	l.room.Broadcast()
	l.unpark()
	return func(linger bool) bool { return l.closeSocket(whole, linger) }
}

// closeSocket closes the socket, unless linger is set, which it returns. With TLS, whole says that
// no record was sent in part. l.mu is held.
func (l *Link) closeSocket(whole, linger bool) bool {
	if l.raw != nil && l.tls != nil && whole {
		l.tls.goodbye(l.raw)
	}
	switch {
	case linger: // Linger closes it
	case l.raw != nil: // closing a socket does not block
		_ = l.nc.Close() // the only error would be that it is closed already
	default: // the rest may block, and locks are held here
		l.host.Goroutines.Go(func() { // ends by itself; Close of the server awaits it
			l.endTLS()
			_ = l.nc.Close() // as above
		})
	}
	return linger
}

// Linger closes the socket as lingering describes. The reader calls it, at its end.
func (l *Link) Linger() {
	l.endTLS()
	l.host.lingering.close(l.nc)
}

// endTLS tells the client of a connection that is no socket that it ends.
func (l *Link) endTLS() {
	if l.raw == nil && l.tls != nil {
		_ = l.nc.SetWriteDeadline(time.Now().Add(goodbyePatience))
		_ = l.tls.conn.Close()
	}
}

// Finish makes the link close when its output is sent, or after the time of a handshake: there is
// no longer a session that could expire if the client does not read. l.mu is held.
func (l *Link) Finish() {
	l.closeAfter = true
	if l.raw != nil && !l.flushing { // a goroutine that is writing looks at closeAfter afterwards
		l.raw.Last = true
	}
	// Fails if the connection is closed already. The clock is the runtime's, as in the handshake.
	_ = l.nc.SetWriteDeadline(time.Now().Add(l.host.Patience()))
}

// Ending reports whether the link is closed, or closes when its output is sent. l.mu is held.
func (l *Link) Ending() bool { return l.closed || l.closeAfter }

// Await waits while cond holds, until the link ends. cond is called with l.mu held after each
// call of Wake. l.mu is held.
func (l *Link) Await(cond func() bool) {
	for !l.Ending() && cond() {
		l.room.Wait()
	}
}

// Pause waits until that moment, or until the link ends, and reads nothing. Meanwhile the client
// counts as heard from the bytes that arrive, as in ReadAhead. Only the reader calls Pause.
func (l *Link) Pause(moment time.Time) {
	l.handling.Store(l.raw == nil)
	l.full.Store(true)
	defer l.full.Store(false)
	l.noteArrivals(l.host.Now())
	l.awaitUntil(moment)
	l.noteArrivals(l.host.Now())
}

func (l *Link) awaitUntil(moment time.Time) {
	wait := time.Until(moment)
	if wait <= 0 { // as a timer, Go 1.26 crashes now and then in a bubble with the race detector
		return
	}
	timer := time.AfterFunc(wait, func() {
		l.mu.Lock()
		l.Wake()
		l.mu.Unlock()
	})
	defer timer.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Await(func() bool { return time.Now().Before(moment) })
}

// AwaitFlushed returns when a link that ends has sent its output, or cannot.
func (l *Link) AwaitFlushed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.closeAfter && !l.closed && (l.flushing || l.Out.Len() > 0) {
		if l.flushing {
			l.room.Wait()
		} else {
			l.writeOut(false)
		}
	}
}

// AwaitClosed waits until l is closed. Meanwhile the server counts as waiting for the client.
func (l *Link) AwaitClosed() {
	l.flushes.Add(1)
	defer l.flushes.Add(-1)
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.closed {
		l.room.Wait()
	}
}

// hearing records when a link's client was last alive, and why the link is not read now. Times are
// kept as durations since Host.wall, because a Unix time would follow the steps of the wall clock:
// all sessions would expire when that clock is set back.
type hearing struct {
	heardAt  atomic.Int64 // when the client was last heard from
	aliveAt  atomic.Int64 // when the client last took replies, or its bytes came and were not read
	handling atomic.Bool  // requests that were read are handled; until they are, the link is not read
	flushes  atomic.Int32 // calls of flush, each of which may wait for the client to take its replies
	full     atomic.Bool  // Pause or ReadAhead waits, and the socket is not read
	inLine   atomic.Bool  // a frame waits for its place
	// inQueues is how much was in the socket's queues when the last flush was found waiting. It is
	// owned by the caller of NoteProgress.
	inQueues rawio.Queued
	// arrived is the position in the stream up to which bytes are known to have come, as of the
	// last pause. They do not count as heard again when they are read.
	arrived atomic.Int64
	timeout atomic.Int64 // see SetTimeout
	probing atomic.Bool  // the client's system is probed
	// holdsBack: the reader reads although the input has requests, which the server holds back.
	// Only the reader uses it.
	holdsBack bool
}

// SetHandling sets whether requests that were read are handled. Until then the link is not read.
func (l *Link) SetHandling(on bool) { l.handling.Store(on) }

// HasRequests reports whether requests, or bytes of them, have come that are not handled yet: they
// are being handled, they wait in the input, or nobody has read them. l.mu is held.
func (l *Link) HasRequests() bool {
	var q rawio.Queued
	if l.raw != nil {
		q, _ = l.raw.Queued() // fails if the socket is closed
	}
	return q.Unread > 0 || l.memory.input > 0 || l.handling.Load()
}

// NoteHeard records that bytes were read, unless all of them waited in the socket during a pause.
func (l *Link) NoteHeard(now time.Time) {
	if l.raw == nil || l.raw.Position.Load() > l.arrived.Load() {
		l.heardAt.Store(int64(now.Sub(l.host.wall)))
	}
}

// behind reports whether bytes that came during a pause still wait in the socket.
func (l *Link) behind() bool { return l.raw != nil && l.raw.Position.Load() < l.arrived.Load() }

// noteArrivals notes that the client is alive if bytes wait in the socket that are not known.
func (l *Link) noteArrivals(now time.Time) {
	if l.raw == nil {
		return
	}
	read, known := l.raw.Position.Load(), l.arrived.Load()
	q, open := l.raw.Queued()
	if at := read + int64(q.Unread); open && at > max(read, known) && l.arrived.CompareAndSwap(known, at) {
		l.noteAlive(now)
	}
}

// noteAlive records that the client is alive although the link is not read.
func (l *Link) noteAlive(now time.Time) { l.aliveAt.Store(int64(now.Sub(l.host.wall))) }

// LastBytes returns when the last bytes came, with the monotonic reading of the clock.
func (l *Link) LastBytes() time.Time {
	return l.host.wall.Add(time.Duration(l.heardAt.Load()))
}

// LastAlive returns when the client was last alive, for the expiry of sessions. While requests are
// handled (SetHandling), and so the link is not read, that is now, unless the server waits for the
// client itself to take its replies, or has paused, and has not read since what came meanwhile:
// otherwise a client that has died would live until all that it has sent is refused.
func (l *Link) LastAlive(now time.Time) time.Time {
	if l.handling.Load() && l.flushes.Load() == 0 && !l.behind() {
		return now
	}
	return l.host.wall.Add(time.Duration(max(l.heardAt.Load(), l.aliveAt.Load())))
}

// NoteProgress notes whether a client is alive while its link is not read because the server waits
// for the client to take replies. The client is alive if it has taken or sent bytes since the
// previous call, as the socket's queues show.
//
// In a Pause, and until what came then is read, NoteProgress looks, too. The client's system may
// then be waiting for room in a socket with many bytes. Such a client is alive while its system
// takes all replies.
//
// A client whose frame waits for a place waits for others, who may take long: it is alive until the
// end of its stream has come, which only a socket shows.
//
// Only one goroutine may call NoteProgress.
func (l *Link) NoteProgress(now time.Time) {
	l.probe(now)
	last := l.inQueues
	l.inQueues = rawio.Queued{}
	full := l.full.Load() || l.behind()
	if l.inLine.Load() && (l.raw == nil || !l.raw.Answers().Ended) {
		l.noteAlive(now)
	}
	if l.raw == nil || !full && (!l.handling.Load() || l.flushes.Load() == 0) {
		return
	}
	if full {
		l.noteArrivals(now)
	}
	var open bool
	if l.inQueues, open = l.raw.Queued(); open &&
		(!full && l.inQueues.Unread > last.Unread || l.inQueues.Unsent < last.Unsent ||
			full && l.inQueues.Unread >= InputBytes && l.inQueues.Unsent == 0 && !l.raw.Answers().HasRoom) {
		l.noteAlive(now)
	}
}
