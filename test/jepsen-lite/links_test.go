//go:build linux

package jepsenlite

import (
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// A wire is a connection from member 1 to member 2 through the links.
type wire struct {
	links     *Links
	net       addresses
	near, far net.Conn
}

func newWire(t *testing.T, roundTrip time.Duration, lossPercent float64) wire {
	t.Helper()
	a, links := newLinks(2, roundTrip, lossPercent)
	t.Cleanup(links.Close)
	l, err := net.Listen("tcp", net.JoinHostPort(a.ip(2, 2), strconv.Itoa(a.peerPort)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	links.Listen(2)
	w := wire{links: links, net: a}
	if w.near, err = w.dial(); err != nil {
		t.Fatal(err)
	}
	if w.far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = w.near.Close()
		_ = w.far.Close()
	})
	return w
}

func (w wire) dial() (net.Conn, error) {
	return net.Dial("tcp", net.JoinHostPort(w.net.ip(1, 2), strconv.Itoa(w.net.peerPort)))
}

// passes reports whether a byte arrives in time, and how long it took.
func passes(t *testing.T, from, to net.Conn, limit time.Duration) (bool, time.Duration) {
	t.Helper()
	began := time.Now()
	if _, err := from.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	return arrives(t, to, limit), time.Since(began)
}

func arrives(t *testing.T, to net.Conn, limit time.Duration) bool {
	t.Helper()
	if err := to.SetReadDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	_, err := io.ReadFull(to, make([]byte, 1))
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	return err == nil
}

const (
	soon    = time.Minute
	briefly = 50 * time.Millisecond
)

func TestLinks_Block(t *testing.T) {
	w := newWire(t, 0, 0)
	w.links.Block(1, 2)
	if ok, _ := passes(t, w.near, w.far, briefly); ok {
		t.Error("a byte passed a blocked way")
	}
	if ok, _ := passes(t, w.far, w.near, soon); !ok {
		t.Error("the other direction is blocked too")
	}
	w.links.Heal()
	if !arrives(t, w.far, soon) {
		t.Error("what was held back did not arrive")
	}
	// A way is a direction of bytes, whoever opened the connection.
	w.links.Block(2, 1)
	if ok, _ := passes(t, w.far, w.near, briefly); ok {
		t.Error("a byte passed a blocked way back")
	}
}

func TestLinks_Delay(t *testing.T) {
	w := newWire(t, 0, 0)
	const d = 60 * time.Millisecond
	w.links.Delay(1, 2, d)
	if ok, took := passes(t, w.near, w.far, soon); !ok || took < d {
		t.Errorf("arrived: %v, after %v", ok, took)
	}
	w.links.Heal()
	if ok, _ := passes(t, w.near, w.far, soon); !ok {
		t.Error("nothing arrives any more")
	}
}

func TestLinks_Loss(t *testing.T) {
	const roundTrip = 200 * time.Millisecond
	w := newWire(t, roundTrip, 0)
	if ok, took := passes(t, w.near, w.far, soon); !ok || took < roundTrip/2 {
		t.Errorf("arrived: %v, after %v", ok, took)
	}
	if d := w.links.lateness(1); d != 0 {
		t.Errorf("a byte is late by %v without a loss", d)
	}
	w.links.lossPercent = 2
	w.links.Heal() // is about faults
	for _, bytes := range []int{1000, 5000} {
		const sent = 10_000
		lost, packets := 0, 1+bytes/1448
		for range sent {
			if d := w.links.lateness(bytes); d >= roundTrip {
				lost++
			} else if d != 0 {
				t.Fatalf("%d bytes are late by %v", bytes, d)
			}
		}
		if want := packets * sent / 50; lost < want*2/3 || lost > want*4/3 {
			t.Errorf("%d of %d were late, each of %d packets", lost, sent, packets)
		}
	}
	const quick = 20 * time.Millisecond
	late := 0
	w = newWire(t, quick, 40)
	for range 30 {
		if ok, took := passes(t, w.near, w.far, soon); ok && took >= quick*3/2 {
			late++
		}
	}
	if late == 0 {
		t.Error("no byte was late although many packets were lost")
	}
}

func TestLinks_CutAndRefuse(t *testing.T) {
	w := newWire(t, 0, 0)
	w.links.Cut(2, 1)
	for _, c := range []net.Conn{w.near, w.far} {
		if err := c.SetReadDeadline(time.Now().Add(soon)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("after a cut: %v", err)
		}
	}
	again, err := w.dial()
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close()
	w.links.Refuse(2)
	if _, err := w.dial(); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dialled a member that is gone: %v", err)
	}
}
