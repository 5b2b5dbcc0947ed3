package link

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozkd/gozkd/internal/rawio"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/server/internal/bounds"
)

// dialed returns a Link on a socket, and its client.
func dialed(t *testing.T) (c *Link, client net.Conn) {
	t.Helper()
	nc, client := accept(t, loopback(t, net.ListenConfig{}))
	t.Cleanup(func() { _ = errors.Join(nc.Close(), client.Close()) })
	c = &Link{}
	c.Init(&Host{wall: time.Now()}, nil, nc)
	return c, client
}

// The system of a client that reads nothing and sends nothing answers probes.
func TestProbe_Answered(t *testing.T) {
	c, _ := dialed(t)
	begun := time.Now()
	c.raw.Probe(time.Second)
	late := watchdog.After(t, 20*time.Second)
	for poll := time.NewTicker(50 * time.Millisecond); ; <-poll.C {
		a := c.raw.Answers()
		if !a.Known || a.Unanswered > 1 {
			t.Fatalf("%+v", a)
		}
		if since := time.Since(begun); since > time.Second && a.Ago < since/2 {
			return
		}
		select {
		case <-late:
			t.Fatalf("no probe was answered: %+v", a)
		default:
		}
	}
}

// The client's system is probed while the client has been silent for half of its timeout.
func TestNoteProgress_Probes(t *testing.T) {
	c, _ := dialed(t)
	at := func(seconds int) time.Time { return c.host.wall.Add(time.Duration(seconds) * time.Second) }
	on := func() (set bool) {
		socket, err := c.nc.(syscall.Conn).SyscallConn()
		if err == nil {
			err = socket.Control(func(fd uintptr) {
				v, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE)
				set = err == nil && v != 0
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	c.raw.Probe(0) // the listener's default is on
	for _, step := range []struct {
		timeout, heard, now int // in seconds
		want                bool
	}{{0, 0, 100, false}, {8, 0, 4, false}, {8, 0, 5, true}, {8, 0, 6, true}, {8, 6, 7, false}, {8, 6, 11, true}} {
		c.SetTimeout(time.Duration(step.timeout) * time.Second)
		c.NoteHeard(at(step.heard))
		c.NoteProgress(at(step.now))
		if known := c.Answers().Known; on() != step.want || known != step.want {
			t.Errorf("%+v: probed %v, answers known %v", step, on(), known)
		}
	}
}

// A client whose long frame waits for a place is alive until it ends its stream.
func TestNoteProgress_InLine(t *testing.T) {
	c, client := dialed(t)
	now := time.Now()
	c.host.Init(HostConfig{
		Now: func() time.Time { return now }, Patience: func() time.Duration { return time.Minute }, Relieve: func() {},
		Writes: new(bounds.Writes), Goroutines: new(sync.WaitGroup),
	})
	c.owner = owner(0)
	other := c.host.Writes.Long.Take(1, c, time.Minute) // without a limit there is room for one
	heard := func() bool {
		now = now.Add(time.Second)
		c.NoteProgress(now)
		return c.LastAlive(now).Equal(now)
	}
	took := make(chan struct{})
	go func() {
		c.takePlace(bounds.LongFrame, 0)
		close(took)
	}()
	for !c.inLine.Load() {
		time.Sleep(time.Millisecond)
	}
	for range 3 {
		if !heard() {
			t.Fatal("a client that waits for others counts as silent")
		}
	}
	_ = client.Close()
	for !c.raw.Answers().Ended { // loopback delivers in moments
		time.Sleep(time.Millisecond)
	}
	if heard() {
		t.Error("a client that has gone is alive while its frame waits")
	}
	c.host.Writes.Free(other)
	<-took
	if heard() {
		t.Error("a client that has gone is alive when its frame has a place")
	}
}

// The socket shows whether a client that is not read is alive: bytes of it come, or it takes bytes.
// Bytes that only wait show nothing, nor does anything while the connection is read.
func TestNoteProgress_Socket(t *testing.T) {
	c, client := dialed(t)
	now := c.host.wall
	heard := func() bool {
		now = now.Add(time.Second)
		c.NoteProgress(now)
		return c.aliveAt.Load() == int64(now.Sub(c.host.wall))
	}
	inQueues := func() rawio.Queued {
		q, ok := c.raw.Queued()
		if !ok {
			t.Fatal("the connection is closed")
		}
		return q
	}
	say := func() {
		if _, err := client.Write([]byte("ping")); err != nil {
			t.Fatal(err)
		}
	}
	arrived := func(n int) {
		for inQueues().Unread < n { // loopback delivers in moments
			time.Sleep(time.Millisecond)
		}
	}
	say()
	arrived(4)
	if heard() {
		t.Error("heard by its unread bytes while it is about to be read")
	}
	c.handling.Store(true)
	if heard() {
		t.Error("heard by its socket while the server is busy with its requests")
	}
	c.flushes.Store(1)
	if !heard() {
		t.Error("bytes that came are not noticed")
	}
	for range 100 {
		if heard() {
			t.Fatal("heard by bytes that only wait")
		}
	}
	say()
	arrived(8)
	if !heard() {
		t.Error("more bytes are not noticed")
	}
	unsent := 0
	for block := make([]byte, 1<<20); ; { // until the client's window is full, too
		n, err := c.raw.TryWrite(block, false)
		if err != nil {
			t.Fatal(err)
		}
		if q := inQueues(); n == 0 && q.Unsent == unsent {
			break
		} else {
			unsent = q.Unsent
		}
	}
	for heard() { // what was under way
	}
	if _, err := io.CopyN(io.Discard, client, int64(unsent)); err != nil {
		t.Fatal(err)
	}
	for !heard() { // the client's system says later that there is room
		time.Sleep(time.Millisecond)
	}
	// A closed socket shows nothing: its queues are empty, which is no progress.
	if _, err := c.raw.TryWrite(make([]byte, 8<<20), false); err != nil {
		t.Fatal(err)
	}
	heard()
	_ = c.nc.Close()
	if heard() {
		t.Error("heard by the end of its socket")
	}
}

// What a client has sent before or during a pause does not count again when it is read, nor does
// the handling of it, so a client that has died does not live until all is read.
func TestPause_Behind(t *testing.T) {
	const packet, sent = 1000, InputBytes / 2
	small := net.ListenConfig{Control: func(_, _ string, socket syscall.RawConn) (err error) {
		controlled := socket.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, packet)
		})
		return errors.Join(controlled, err)
	}}
	nc, client := accept(t, loopback(t, small))
	defer func() { _ = client.Close() }()
	now, host, c := time.Now(), &Host{}, &Link{}
	host.Init(HostConfig{
		Now: func() time.Time { return now }, Patience: func() time.Duration { return time.Minute }, Relieve: func() {},
		Writes: new(bounds.Writes), Goroutines: new(sync.WaitGroup),
	})
	c.Init(host, owner(0), nc)
	defer c.Close()
	alive := func() bool { return c.LastAlive(now).Equal(now) }
	noted := func() bool {
		now = now.Add(time.Second)
		c.NoteProgress(now)
		return alive()
	}
	send := func(n, unread int) {
		if _, err := client.Write(make([]byte, n)); err != nil {
			t.Fatal(err)
		}
		for q, ok := c.raw.Queued(); ok && q.Unread < unread; q, ok = c.raw.Queued() {
			time.Sleep(time.Millisecond) // loopback delivers in moments
		}
	}
	if c.NoteHeard(now); !alive() {
		t.Error("a client that comes is not heard")
	}
	send(sent, sent)
	c.Pause(time.Time{}) // it is over
	if !alive() {
		t.Error("bytes that come before a pause do not count")
	}
	c.SetHandling(true)
	for range 3 {
		if noted() {
			t.Fatal("a client that has sent nothing more is alive because the server is behind")
		}
	}
	if send(InputBytes, sent+InputBytes); !noted() {
		t.Error("more bytes do not count")
	}
	if hasRoom := c.raw.Answers().HasRoom; noted() == hasRoom { // unknown before Linux 6.2
		t.Errorf("alive %v, although it may send more: %v", !hasRoom, hasRoom)
	}
	var in Input
	for c.behind() {
		now = now.Add(time.Second)
		if err := in.Fill(c); err != nil {
			t.Fatal(err)
		}
		c.NoteHeard(now)
		if c.behind() && alive() || c.LastBytes().Equal(now) {
			t.Error("old bytes that are read count")
		}
		c.Drop(&in)
	}
	if !alive() {
		t.Error("a client whose last requests are handled is not alive")
	}
	c.SetHandling(false)
	send(1, 1)
	if err := in.Fill(c); err != nil {
		t.Fatal(err)
	}
	if c.NoteHeard(now); !alive() {
		t.Error("new bytes do not count")
	}
	c.Drop(&in)
}

// A client that is silent during a pause is not alive, however long it lasts; one that sends is.
func TestPause_Silent(t *testing.T) {
	c, client := dialed(t)
	now := c.host.wall
	var mu sync.Mutex // guards now
	c.host.Init(HostConfig{
		Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }, Patience: func() time.Duration { return time.Minute }, Relieve: func() {},
		Writes: new(bounds.Writes), Goroutines: new(sync.WaitGroup),
	})
	c.owner = owner(0)
	c.SetHandling(true)
	paused := make(chan struct{})
	go func() {
		defer close(paused)
		c.Pause(time.Now().Add(time.Hour)) // until the link ends
	}()
	for !c.full.Load() {
		time.Sleep(time.Millisecond)
	}
	heard := func() bool {
		mu.Lock()
		now = now.Add(time.Second)
		at := now
		mu.Unlock()
		c.NoteProgress(at)
		return c.LastAlive(now).Equal(at)
	}
	hasRequests := func() bool {
		c.Lock()
		defer c.Unlock()
		return c.HasRequests()
	}
	for range 3 {
		if heard() || hasRequests() {
			t.Fatal("a client that has sent nothing during its pause counts as alive, or as one with requests")
		}
	}
	if _, err := client.Write([]byte("ping")); err != nil {
		t.Fatal(err)
	}
	for !heard() { // loopback delivers in moments
		time.Sleep(time.Millisecond)
	}
	if heard() {
		t.Error("bytes that only wait count")
	}
	if !hasRequests() {
		t.Error("bytes that wait in the socket are no request")
	}
	c.Close()
	<-paused
}

// A client whose long write waits for the window counts as one whose frame waits for a place, and
// when it has gone its connection does not wait for the window.
func TestEnterWindow_Gone(t *testing.T) {
	c, client := dialed(t)
	now := time.Now()
	var writes bounds.Writes
	writes.Init(0, 1<<20, 0, 0)
	c.host.Init(HostConfig{
		Now: func() time.Time { return now }, Patience: func() time.Duration { return 100 * time.Millisecond }, Relieve: func() {},
		Writes: &writes, Goroutines: new(sync.WaitGroup),
	})
	c.owner = owner(0)
	if !writes.Enter(writes.Long.Take(512<<10, c, time.Minute), false, time.Minute) || !c.takePlace(bounds.LongFrame, 0) {
		t.Fatal("there is no room in the beginning")
	}
	c.SetHandling(true)
	entered := make(chan bool, 1)
	go func() { entered <- c.EnterWindow(false) }()
	late := watchdog.After(t, 30*time.Second)
	for poll := time.NewTicker(time.Millisecond); !c.inLine.Load(); <-poll.C {
		select {
		case <-late:
			t.Fatal("the write does not wait, or the client is said to be handled")
		default:
		}
	}
	for range 3 {
		now = now.Add(time.Second)
		if c.NoteProgress(now); !c.LastAlive(now).Equal(now) {
			t.Fatal("a client that waits for others counts as silent")
		}
	}
	_ = client.Close()
	select {
	case proposed := <-entered:
		if proposed || c.inLine.Load() || !c.MustEnter() {
			t.Error("the write of a client that has gone is proposed")
		}
	case <-late:
		t.Fatal("the write of a client that has gone waits")
	}
	c.dropPlace()
	if held := writes.Long.Held(); held != 512<<10 {
		t.Errorf("%d bytes are held", held)
	}
}
