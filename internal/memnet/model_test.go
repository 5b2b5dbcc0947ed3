package memnet_test

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/memnet"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
)

// All events of the model happen on a grid of ticks, and deadlines pass between two ticks. So no
// two events are simultaneous.
const (
	tick  = 10 * time.Millisecond
	later = 7 * time.Millisecond
)

// flow models one direction of a connection. Its i-th byte is byteAt(i).
type flow struct {
	sent, read       int
	arrivals         []arrival // of sent, in order
	cut              bool
	delay            time.Duration
	late             struct{ reader, writer bool } // deadlines that have passed
	closedW, closedR bool
}

// arrival is the time at which the first upTo bytes have arrived.
type arrival struct {
	at   time.Time
	upTo int
}

func byteAt(i int) byte { return byte(i ^ i>>8 ^ i>>16) }

// arrives records that all bytes sent so far, and the end if the flow was closed, arrive after the
// delay and not before earlier bytes.
func (f *flow) arrives() {
	at := time.Now().Add(f.delay)
	if n := len(f.arrivals); n > 0 && f.arrivals[n-1].at.After(at) {
		at = f.arrivals[n-1].at
	}
	f.arrivals = append(f.arrivals, arrival{at, f.sent})
}

// there returns how many unread bytes have arrived at that time, and whether the end follows them.
func (f *flow) there(now time.Time) (n int, end bool) {
	if f.cut {
		return 0, false
	}
	end = f.closedW
	for _, a := range f.arrivals {
		if a.at.After(now) {
			return n, false
		}
		n = a.upTo - f.read
	}
	return n, end
}

// model is one connection and its expected state.
type model struct {
	*rapid.T
	network *memnet.Network
	conns   [2]net.Conn
	flows   [2]flow // i: what conns[i] writes
	torn    bool
}

func (m *model) end() int { return rapid.IntRange(0, 1).Draw(m.T, "end") }

func (m *model) size() int {
	return rapid.OneOf(
		rapid.IntRange(0, 2000), rapid.SampledFrom([]int{window / 5, window / 3, window / 2, window - 1, window, window + 1}),
	).Draw(m.T, "size")
}

// rarely is true in 1 of 32 cases. It compares with a large number, because rapid prefers small
// ones.
func (m *model) rarely() bool {
	for range 5 {
		if !rapid.Bool().Draw(m.T, "really") {
			return false
		}
	}
	return true
}

func (m *model) host(i int) string { return string("ab"[i]) }

func (m *model) mustBe(op string, n, wantN int, err, want error) {
	m.Helper()
	if n != wantN || !errors.Is(err, want) {
		m.Fatalf("%s: %d, %v; want %d, %v", op, n, err, wantN, want)
	}
	if op := new(net.OpError); err != nil && !errors.Is(err, io.EOF) && !errors.As(err, &op) {
		m.Fatalf("%v is a %T", err, err)
	}
	if late := errors.Is(err, os.ErrDeadlineExceeded); late {
		if ne := net.Error(nil); !errors.As(err, &ne) || !ne.Timeout() {
			m.Fatalf("%v is no timeout", err)
		}
	}
}

func (m *model) write() {
	i, size := m.end(), m.size()
	f := &m.flows[i]
	b := make([]byte, size)
	for k := range b {
		b[k] = byteAt(f.sent + k)
	}
	var want error
	wantN, waits, patient := 0, false, rapid.Bool().Draw(m.T, "patient")
	switch {
	case f.closedW:
		want = net.ErrClosed
	case m.torn:
		want = syscall.ECONNRESET
	case f.late.writer:
		want = os.ErrDeadlineExceeded
	case f.closedR && !f.cut:
		want = syscall.EPIPE
	default:
		wantN = min(size, window-(f.sent-f.read))
		if waits = patient && wantN < size; waits {
			want = os.ErrDeadlineExceeded
		}
		if f.sent += wantN; wantN > 0 {
			f.arrives()
		}
	}
	if waits {
		m.must(m.conns[i].SetWriteDeadline(time.Now().Add(later)))
	}
	begun := time.Now()
	write := m.conns[i].Write
	if !patient {
		write = m.conns[i].(interface{ TryWrite([]byte) (int, error) }).TryWrite
	}
	n, err := write(b)
	clear(b) // it is ours
	m.mustBe("write", n, wantN, err, want)
	if !waits {
		m.mustTake(begun, 0)
	} else {
		m.mustTake(begun, later)
		m.must(m.conns[i].SetWriteDeadline(time.Time{}))
		time.Sleep(tick - later)
	}
}

func (m *model) read() {
	i, size := m.end(), m.size()
	f := &m.flows[1-i]
	var want error
	var wait time.Duration
	wantN, limited := 0, false
	n, end := f.there(time.Now())
	switch {
	case f.closedR:
		want = net.ErrClosed
	case m.torn:
		want = syscall.ECONNRESET
	case f.late.reader:
		want = os.ErrDeadlineExceeded
	case size == 0:
	case n > 0:
		wantN = min(size, n)
	case end:
		want = io.EOF
	default: // it waits for the next arrival that tells anything, or until the deadline
		limited = true
		wait, want = later, os.ErrDeadlineExceeded
		if rapid.Bool().Draw(m.T, "patient") {
			wait = 50*tick + later
		}
		for _, a := range f.arrivals {
			if n, end := f.there(a.at); (n > 0 || end) && time.Until(a.at) < wait {
				wait, want, wantN = time.Until(a.at), nil, min(size, n)
				if n == 0 {
					want = io.EOF
				}
				break
			}
		}
	}
	if limited {
		limit := wait
		if want == nil || errors.Is(want, io.EOF) {
			limit += later
		}
		m.must(m.conns[i].SetReadDeadline(time.Now().Add(limit)))
	}
	b := make([]byte, size)
	begun := time.Now()
	n, err := m.conns[i].Read(b)
	m.mustBe("read", n, wantN, err, want)
	m.mustTake(begun, wait)
	for k := range n {
		if b[k] != byteAt(f.read+k) {
			m.Fatalf("byte %d of the stream is %d, want %d", f.read+k, b[k], byteAt(f.read+k))
		}
	}
	f.read += n
	if limited {
		m.must(m.conns[i].SetReadDeadline(time.Time{}))
	}
	if errors.Is(want, os.ErrDeadlineExceeded) && limited {
		time.Sleep(tick - later)
	}
}

func (m *model) mustTake(begun time.Time, want time.Duration) {
	m.Helper()
	if took := time.Since(begun); took != want {
		m.Fatalf("took %v, want %v", took, want)
	}
}

func (m *model) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

func (m *model) pass() { time.Sleep(tick * time.Duration(rapid.IntRange(1, 4).Draw(m.T, "ticks"))) }

func (m *model) cut() {
	i := m.end()
	f := &m.flows[i]
	f.cut = !f.cut
	m.network.Cut(m.host(i), m.host(1-i), f.cut)
}

func (m *model) delay() {
	i := m.end()
	d := tick * time.Duration(rapid.IntRange(0, 3).Draw(m.T, "delay"))
	m.flows[i].delay = d
	m.network.Delay(m.host(i), m.host(1-i), d)
}

func (m *model) deadline() {
	i, late := m.end(), rapid.Bool().Draw(m.T, "late")
	out, in := &m.flows[i], &m.flows[1-i]
	at := time.Time{}
	if late {
		at = time.Now()
	}
	var err, want error
	if out.closedW {
		want = net.ErrClosed
	}
	switch which := rapid.IntRange(0, 2).Draw(m.T, "which"); which {
	case 0:
		err, in.late.reader = m.conns[i].SetReadDeadline(at), late
	case 1:
		err, out.late.writer = m.conns[i].SetWriteDeadline(at), late
	default:
		err, in.late.reader, out.late.writer = m.conns[i].SetDeadline(at), late, late
	}
	if !errors.Is(err, want) {
		m.Fatalf("deadline: %v, want %v", err, want)
	}
}

func (m *model) tear() {
	if m.rarely() {
		m.torn = true
		i := m.end()
		m.network.Tear(m.host(i), rapid.SampledFrom([]string{"", m.host(1 - i)}).Draw(m.T, "with"))
	}
}

func (m *model) close() {
	if !m.rarely() {
		return
	}
	i := m.end()
	out, in := &m.flows[i], &m.flows[1-i]
	var want error
	if out.closedW {
		want = net.ErrClosed
	}
	if err := m.conns[i].Close(); !errors.Is(err, want) {
		m.Fatalf("close: %v, want %v", err, want)
	}
	if !out.closedW {
		out.closedW, in.closedR = true, true
		out.arrives()
	}
}

// A connection agrees with the model in every byte and time, whatever happens to its links.
func TestConn_Model(t *testing.T) {
	exhaustive.Checks(t, 20, 100)
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(struct{ testing.TB }{t}, func(rt *rapid.T) { // not t itself: rapid would ask for its deadline
			m := &model{T: rt, network: memnet.New(0)}
			m.conns[0], m.conns[1] = connect(t, m.network)
			defer closeAll(m.conns[:]...)
			does := map[string]func(*rapid.T){
				"write": func(*rapid.T) { m.write() }, "write again": func(*rapid.T) { m.write() },
				"read": func(*rapid.T) { m.read() }, "read again": func(*rapid.T) { m.read() },
				"pass": func(*rapid.T) { m.pass() }, "cut": func(*rapid.T) { m.cut() }, "delay": func(*rapid.T) { m.delay() },
				"deadline": func(*rapid.T) { m.deadline() }, "tear": func(*rapid.T) { m.tear() }, "close": func(*rapid.T) { m.close() },
			}
			for range 5 { // one Repeat is too short for buffers to wrap around
				rt.Repeat(does)
			}
		})
	})
}
