package rawio_test

import (
	"net"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/rawio"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

// The system of a peer that reads nothing and sends nothing answers probes.
func TestProbe_Answered(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	peer, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	begun := time.Now()
	control := func(f func(fd uintptr)) {
		if err := rawio.Socket(c).Control(f); err != nil {
			t.Fatal(err)
		}
	}
	control(func(fd uintptr) { rawio.Probe(fd, time.Second) })
	late := watchdog.After(t, 20*time.Second)
	for poll := time.NewTicker(50 * time.Millisecond); ; <-poll.C {
		var a rawio.Answers
		control(func(fd uintptr) { a = rawio.AnswersOf(fd) })
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
