package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
)

func TestBackoff(t *testing.T) {
	for _, c := range []struct {
		refused        bool
		first, longest time.Duration
	}{{false, firstWait, longestWait}, {true, firstWaitRefused, longestWaitRefused}} {
		var b backoff
		want := c.first
		for i := range 20 {
			if got := b.next(0, c.refused); got < want/2 || got >= want {
				t.Errorf("wait %d is %v, want from %v to %v", i, got, want/2, want)
			}
			want = min(2*want, c.longest)
		}
		if got := b.next(longestWait-1, c.refused); got < c.longest/2 {
			t.Errorf("after a short connection: %v", got)
		}
		if got := b.next(longestWait, c.refused); got >= c.first {
			t.Errorf("after a long connection: %v", got)
		}
	}
}

func TestNews(t *testing.T) {
	var n logOnce
	for _, c := range []struct {
		id   uint64
		text string
		want bool
	}{{1, "a", true}, {1, "a", false}, {2, "a", true}, {1, "b", true}, {1, "a", false}} {
		if got := n.isNew(c.id, c.text); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	n.forget(1)
	if !n.isNew(1, "a") || n.isNew(2, "a") {
		t.Error("forget(1) must be about 1 alone")
	}
	for i := range uint64(10 * maxLogged) {
		n.isNew(i, "x")
		if len(n.logged) > maxLogged {
			t.Fatalf("%d entries are kept", len(n.logged))
		}
	}
}

// Errors that differ only in local ports, or in arbitrary bytes from the network, have the same log
// key.
func TestKindOf(t *testing.T) {
	op := func(port int, err error) error {
		return fmt.Errorf("peer: %w", &net.OpError{Op: "dial", Net: "tcp", Source: &net.TCPAddr{Port: port}, Err: err})
	}
	for _, c := range []struct {
		a, b error
		same bool
	}{
		{op(1, syscall.ECONNREFUSED), op(2, syscall.ECONNREFUSED), true},
		{op(1, syscall.ECONNREFUSED), op(1, syscall.EHOSTUNREACH), false},
		{&net.DNSError{Name: "a", Err: "read udp :1: timeout"}, &net.DNSError{Name: "a", Err: "read udp :2: timeout"}, true},
		{&net.DNSError{Name: "a"}, &net.DNSError{Name: "b"}, false},
		{fmt.Errorf("%w: x", ErrCorrupt), fmt.Errorf("%w: y", ErrCorrupt), true},
		{&RefusedError{1, "x"}, &RefusedError{1, "y"}, false},
		{&rejectedError{reason: RefusedByMember, err: errors.New("x")}, &rejectedError{reason: RefusedByMember, err: errors.New("y")}, false},
		{ErrSilent, ErrSilent, true},
		{a: fmt.Errorf("peer: %w", &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired, Detail: "current time 1"}}),
			b: fmt.Errorf("peer: %w", &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired, Detail: "current time 2"}}), same: true},
	} {
		if got := logKey(c.a) == logKey(c.b); got != c.same {
			t.Errorf("%q and %q: %v", logKey(c.a), logKey(c.b), got)
		}
	}
}

func TestReasonText(t *testing.T) {
	for _, s := range []string{"", "short", strings.Repeat("ü", maxReason), "a\xff\xfe"} {
		got := reasonText(s)
		if len(got) > maxReason || !utf8.ValidString(got) || !strings.HasPrefix(got, s[:min(len(s), 1)]) {
			t.Errorf("%.20q became %.20q of %d bytes", s, got, len(got))
		}
	}
}

func TestNobodyThere(t *testing.T) {
	if !connectionRefused(fmt.Errorf("dial: %w", &net.OpError{Err: syscall.ECONNREFUSED})) || connectionRefused(syscall.EHOSTUNREACH) || connectionRefused(ErrSilent) {
		t.Error("only a refused dial says that nobody is there")
	}
}

// Frames that were queued for a connection do not move to the next one.
func TestP1_QueueForgetsFramesOfAClosedConnection(t *testing.T) {
	q := newQueue(1 << 20)
	q.open()
	if !q.put([]byte("frame")) {
		t.Fatal("an open queue took no frame")
	}
	q.close()
	if q.put([]byte("frame")) {
		t.Error("a closed queue took a frame")
	}
	q.open()
	if frames := q.take(nil); len(frames) > 0 || q.bytes.Load() != 0 {
		t.Errorf("the next connection begins with %q and %d bytes", frames, q.bytes.Load())
	}
}

// Drained is called when all frames that have come were received, before more is awaited: once for
// frames that came together, and also before the rest of a frame.
func TestDrained(t *testing.T) {
	here, there := net.Pipe()
	n, calls := &Network{cfg: Config{MaxFrame: 100}}, make(chan string, 10)
	handler := &member{receive: func(_ uint64, frame []byte) { calls <- string(frame) }}
	n.cfg.Handler = handler
	source := newTimeoutReader(here)
	source.drained = func() { calls <- "drained" }
	ended := make(chan error, 1)
	go func() { ended <- n.takeFrames(t.Context(), source, &link{}) }() // ends with a refusal, awaited below
	b := appendFrame(appendFrame(nil, typeData, []byte("a")), typeData, []byte("b"))
	third := appendFrame(nil, typeData, []byte("c"))
	for _, part := range [][]byte{append(b, third[:5]...), third[5:]} {
		if _, err := there.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for range 6 {
		got = append(got, <-calls)
	}
	if want := []string{"drained", "a", "b", "drained", "c", "drained"}; !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
	// Not by closing there: is that an end of file or a closed pipe? It depends on who is first.
	if _, err := there.Write(appendFrame(nil, typeFailed, []byte("enough"))); err != nil {
		t.Fatal(err)
	}
	if refused := (*RefusedError)(nil); !errors.As(<-ended, &refused) {
		t.Error("it went on after a refusal")
	}
}
