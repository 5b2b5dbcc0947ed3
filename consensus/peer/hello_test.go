package peer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// P3: each side decides about the hello of the other side, which is made for this connection.
func TestP3_BothJudge(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		peerReached := make(chan string, 10)
		checkHello := func(m *member, _ *Config) {
			m.accept = func(from uint64, hello []byte) error {
				peerReached <- fmt.Sprintf("%d hears %q from %d", m.id, hello, from)
				return nil
			}
		}
		a, b := w.start(t, 1, checkHello), w.start(t, 2, checkHello)
		a.SetPeers(map[uint64]string{2: b.address})
		a.await(2, "up")
		if x, y := <-peerReached, <-peerReached; x != `2 hears "i am 1" from 1` || y != `1 hears "i am 2" from 2` {
			t.Errorf("%s, %s", x, y)
		}
	})
}

// P3: a peer that the acceptor rejects is told the reason. Both sides log it once and report it in
// Status, and both recover.
func TestP3_RefusedByTheCalled(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var strict atomic.Bool
		strict.Store(true)
		var tries atomic.Int32
		a := w.start(t, 1)
		b := w.start(t, 2, func(m *member, _ *Config) {
			m.accept = func(uint64, []byte) error {
				tries.Add(1)
				if strict.Load() {
					return errors.New("ensemble a is not ensemble b")
				}
				return nil
			}
		})
		b.SetPeers(map[uint64]string{1: w.confirmer(t, 1)}) // before the first call
		a.SetPeers(map[uint64]string{2: b.address})
		time.Sleep(time.Minute)
		if n := tries.Load(); n < 12 || n > 30 {
			t.Errorf("%d attempts in a minute", n)
		}
		var refused *RefusedError
		if err := a.status(2).LastError; !errors.As(err, &refused) || *refused != (RefusedError{2, "ensemble a is not ensemble b"}) {
			t.Errorf("last error of the caller: %v", err)
		}
		if err := b.status(1).IncomingError; err == nil || !strings.Contains(err.Error(), "ensemble a is not ensemble b") {
			t.Errorf("last error of the acceptor: %v", err)
		}
		for _, m := range []*member{a, b} {
			if n := m.log.Count("ensemble a is not ensemble b"); n != 1 {
				t.Errorf("%d lines of %d, want 1:\n%s", n, m.id, m.log)
			}
		}
		strict.Store(false)
		a.await(2, "up")
		synctest.Wait()
		if err := b.status(1).IncomingError; err != nil {
			t.Errorf("last error of the acceptor after a good connection: %v", err)
		}
		strict.Store(true)
		a.SetPeers(nil)
		a.await(2, "down")
		a.SetPeers(map[uint64]string{2: b.address})
		a.await(2, "down")
		synctest.Wait()
		for _, m := range []*member{a, b} {
			if n := m.log.Count("ensemble a is not ensemble b"); n != 2 {
				t.Errorf("%d lines of %d after a good connection in between, want 2:\n%s", n, m.id, m.log)
			}
		}
	})
}

// P3: the same if the dialing side rejects the other side.
func TestP3_RejectedByTheCaller(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var strict atomic.Bool
		strict.Store(true)
		a := w.start(t, 1, func(m *member, _ *Config) {
			m.accept = func(uint64, []byte) error {
				if strict.Load() {
					return errors.New("you have forgotten what you knew")
				}
				return nil
			}
		})
		b := w.start(t, 2)
		a.SetPeers(map[uint64]string{2: b.address})
		time.Sleep(time.Minute)
		if a.Send(2, []byte("x")) {
			t.Error("sent to a peer that was not accepted")
		}
		for _, m := range []*member{a, b} {
			if n := m.log.Count("you have forgotten what you knew"); n != 1 {
				t.Errorf("%d lines of %d, want 1:\n%s", n, m.id, m.log)
			}
		}
		strict.Store(false)
		a.await(2, "up")
		if len(b.frames) != 0 {
			t.Errorf("received %q", <-b.frames)
		}
	})
}

// P3: a connection that is addressed to another member, or comes from an impossible one, is
// refused.
func TestP3_WrongIDs(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		for _, c := range []struct {
			kind     uint32
			from, to uint64
			reason   string
		}{
			{kindFrames, 2, 3, "this is member 1, not 3"},
			{kindCheckpoint, 2, 0, "this is member 1, not 0"},
			{kindFrames, 1, 1, "two servers have the same id"},
			{kindFrames, 0, 1, "can't have member 0 as its peer"},
			{kindAccepted, 2, 1, "hello of kind 3"},
			{0, 2, 1, "hello of kind 0"},
		} {
			a := w.start(t, 1)
			for range 3 {
				s := w.call(t, a.address)
				answer := s.exchangeGreetings(c.kind, c.from, c.to)
				if answer.kind != kindRefused || answer.from != 1 || !strings.Contains(string(answer.contents), c.reason) {
					t.Fatalf("answer to %+v is %d from %d: %q", c, answer.kind, answer.from, answer.contents)
				}
				_ = s.Close()
			}
			eventually(t, c.reason, func() bool { return a.log.Count(c.reason) == 1 })
		}
		a, b := w.start(t, 1), w.start(t, 2)
		b.SetPeers(map[uint64]string{3: a.address})
		b.await(3, "down")
		if err := b.status(3).LastError; err.Error() != "peer: member 1 refuses: this is member 1, not 3" {
			t.Errorf("last error is %v", err)
		}
	})
}

// P3: bytes that are no hello of this version are refused.
func TestP3_WrongHello(t *testing.T) {
	good := (&greeting{kind: kindFrames, from: 2, to: 1, contents: []byte("hello")}).append(nil)
	change := func(at int, b byte) []byte {
		c := bytes.Clone(good)
		c[at] = b
		return c
	}
	for _, c := range []struct {
		name, reason string
		bytes        []byte
	}{
		{"magic", "no hello of gozkd", []byte("GET / HTTP/1.1\r\nHost: a.very.long.name.example\r\n\r\n")},
		{"version", "the other side uses version 2 of the protocol between members, this program version 1", change(8, 2)},
		{"checksum", "the hello has checksum", change(greetingBytes, 'H')},
		{"length", "hello of 16777221 bytes, the maximum is 65536", change(35, 1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, w *world) {
				a := w.start(t, 1)
				for range 3 {
					s := w.call(t, a.address)
					go func() { _, _ = s.Write(c.bytes) }() // a pipe is not read to the end
					answer := s.answer()
					if answer.kind != kindRefused || !strings.Contains(string(answer.contents), c.reason) {
						t.Errorf("answer is %d %q", answer.kind, answer.contents)
					}
					_ = s.Close()
				}
				eventually(t, "a line is logged", func() bool { return a.log.Count("refused") > 0 })
			})
			inBubble(t, func(t *testing.T, w *world) {
				a := w.start(t, 1)
				for range 3 {
					s := w.call(t, a.address)
					go func() { _, _ = s.Write(c.bytes) }()
					s.answer()
					_ = s.Close()
				}
				synctest.Wait()
				if n := a.log.Count("refused"); n != 1 {
					t.Errorf("%d lines, want 1:\n%s", n, a.log)
				}
			})
		})
	}
}

// P3: a member of a later version sends a refusal, which all versions can decode.
func TestP3_RefusalOfAnotherVersion(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		address, calls := w.receptionist(t)
		a := w.start(t, 1)
		a.SetPeers(map[uint64]string{2: address})
		s := <-calls
		s.answer()
		refusal := (&greeting{kind: kindRefused, from: 2, to: 1, contents: []byte("version 9 is spoken here")}).append(nil)
		binary.LittleEndian.PutUint32(refusal[8:], 9)
		binary.LittleEndian.PutUint32(refusal[36:], checksum(refusal[:36], refusal[greetingBytes:]))
		s.say(refusal)
		a.await(2, "down")
		if err := a.status(2).LastError; err.Error() != "peer: member 2 refuses: version 9 is spoken here" {
			t.Errorf("last error is %v", err)
		}
	})
}

// P3: an invalid answer, or an answer of another member, is an error.
func TestP3_WrongAnswer(t *testing.T) {
	for name, say := range map[string]func(s *stranger){
		"closed":       func(s *stranger) { _ = s.Close() },
		"not gozkd":    func(s *stranger) { s.say([]byte("SSH-2.0-Open")) },
		"someone else": func(s *stranger) { s.say((&greeting{kind: kindAccepted, from: 3, to: 1}).append(nil)) },
		"for another":  func(s *stranger) { s.say((&greeting{kind: kindAccepted, from: 2, to: 4}).append(nil)) },
		"a hello":      func(s *stranger) { s.say((&greeting{kind: kindFrames, from: 2, to: 1}).append(nil)) },
		"none for 5 s": func(*stranger) {},
		"half an answer": func(s *stranger) {
			s.say((&greeting{kind: kindAccepted, from: 2, to: 1}).append(nil)[:30])
			_ = s.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				address, calls := w.receptionist(t)
				a := w.start(t, 1, func(m *member, _ *Config) {
					m.accept = func(uint64, []byte) error { t.Error("such an answer is not to be judged"); return nil }
				})
				a.SetPeers(map[uint64]string{2: address})
				s := <-calls
				s.answer()
				say(s)
				a.await(2, "down")
				if got := a.status(2); got.LastError == nil || got.Connected {
					t.Errorf("status is %+v", got)
				}
			})
		})
	}
}

func TestP3_HelloTooLong(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		b := w.start(t, 2)
		for _, c := range []struct {
			length int
			state  string
		}{{MaxHello, "up"}, {MaxHello + 1, "down"}} {
			a := w.start(t, 1, func(m *member, _ *Config) { m.hello = strings.Repeat("x", c.length) })
			a.SetPeers(map[uint64]string{2: b.address})
			a.await(2, c.state)
		}
	})
}

// docs/reference/formats.md describes the format with these examples.
func TestGolden(t *testing.T) {
	hello := greeting{kind: kindFrames, from: 1, to: 2, contents: []byte("abc")}
	for _, c := range []struct {
		name      string
		got, want string
	}{
		{"hello", fmt.Sprintf("%x", hello.append(nil)), "676f7a6b644e4554" + "01000000" + "01000000" + "0100000000000000" +
			"0200000000000000" + "03000000" + "b1fadcdf" + "616263"},
		{"frame", fmt.Sprintf("%x", appendFrame(nil, typeData, []byte("ab"))), "02000000" + "01183a04" + "a46f972f" + "6162"},
		{"beat", fmt.Sprintf("%x", appendFrame(nil, typeHeartbeat, nil)), "00000000" + "026da950" + "807a7b4d"},
	} {
		if c.got != c.want {
			t.Errorf("%s is\n%s, want\n%s", c.name, c.got, c.want)
		}
	}
}

func TestReadGreeting_Ends(t *testing.T) {
	whole := (&greeting{kind: kindFrames, from: 2, to: 1, contents: []byte("hello")}).append(nil)
	for n := range whole {
		_, err := readGreeting(bytes.NewReader(whole[:n]))
		if want := io.ErrUnexpectedEOF; n == 0 && !errors.Is(err, io.EOF) || n > 0 && !errors.Is(err, want) {
			t.Errorf("after %d of %d bytes: %v", n, len(whole), err)
		}
	}
	r := bytes.NewReader(append(whole, "rest"...))
	if g, err := readGreeting(r); err != nil || string(g.contents) != "hello" || r.Len() != 4 {
		t.Errorf("%+v, %v, %d bytes after it", g, err, r.Len())
	}
}

// P5: a hello that gets no answer is soon said again, because it may have been lost or damaged; the
// caller waits longer each time, for an acceptor that is slow to answer.
func TestP5_HelloIsSaidAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		address, calls := w.receptionist(t)
		a := w.start(t, 1)
		began := time.Now()
		a.SetPeers(map[uint64]string{2: address})
		(<-calls).answer() // and nothing is said
		s := <-calls
		if took := time.Since(began); took < helloTimeout || took > helloTimeout+firstWait {
			t.Errorf("said again after %v", took)
		}
		s.answer()
		time.Sleep(2*helloTimeout - time.Millisecond)
		s.say((&greeting{kind: kindAccepted, from: 2, to: 1}).append(nil))
		a.await(2, "down")
		a.await(2, "up")
		if !a.status(2).Connected {
			t.Error("not connected")
		}
	})
}
