package peer

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// confirmer listens at an address and confirms every connection of a member, which accepts none.
func (w *world) confirmer(t testing.TB, id uint64) (address string) {
	t.Helper()
	return w.asked(t, func(g greeting) greeting { return greeting{kind: kindConfirmed, from: id, to: g.from} })
}

// asked listens at an address and answers questions about connections; it closes other connections.
func (w *world) asked(t testing.TB, answer func(question greeting) greeting) (address string) {
	t.Helper()
	address, calls := w.receptionist(t)
	stop, done := make(chan struct{}), make(chan struct{})
	// Stopped by stop, awaited by the cleanup.
	go func() {
		defer close(done)
		for {
			select {
			case s := <-calls:
				if g, err := readGreeting(s.in.r); err == nil && g.kind == kindConfirm {
					reply := answer(g)
					_, _ = s.Write(reply.append(nil))
				}
				_ = s.Close()
			case <-stop:
				return
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-done })
	return address
}

// P8: a stranger that says hello as a member is refused, however often it tries, and the link of
// the member stays.
func TestP8_Impostor(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		a, b := w.start(t, 1), w.start(t, 2)
		know(a, b)
		for i, kind := range []uint32{kindFrames, kindCheckpoint, kindFrames, kindFrames} {
			s := w.call(t, a.address)
			answer := s.exchangeGreetings(kind, 2, 1)
			if answer.kind != kindRefused || !strings.Contains(string(answer.contents), "is not making this connection") {
				t.Fatalf("answer is %d %q", answer.kind, answer.contents)
			}
			_ = s.Close()
			b.Send(1, fmt.Appendf(nil, "%d", i))
			a.expect(fmt.Sprintf("2: %d", i))
		}
		if n := len(a.statesOf(2)) + len(b.statesOf(1)); n != 0 {
			t.Errorf("%d changes of state", n)
		}
		if got := a.log.Count("is not making"); got != 1 {
			t.Errorf("%d lines, want 1:\n%s", got, a.log)
		}
		eventually(t, "all are counted", func() bool { return a.Refused()["impostor"] == 4 })
	})
}

// P8: nobody can take the place of a member that is down.
func TestP8_ImpostorOfAMemberThatIsDown(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		a, b := w.start(t, 1), w.start(t, 2)
		know(a, b)
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		a.await(2, "refused")
		s := w.call(t, a.address)
		if answer := s.exchangeGreetings(kindFrames, 2, 1); answer.kind != kindRefused || !strings.Contains(string(answer.contents), "could not be confirmed") || strings.Contains(string(answer.contents), b.address) {
			t.Fatalf("answer is %d %q", answer.kind, answer.contents)
		}
	})
}

// P8: whoever is at the address of a member confirms nothing by any other answer.
func TestP8_NoConfirmation(t *testing.T) {
	for _, says := range []greeting{
		{kind: kindRefused, from: 2, contents: []byte("hello of kind 7")}, {kind: kindConfirmed, from: 3},
		{kind: kindDenied, from: 3}, {kind: kindAccepted, from: 2}, {kind: kindChallenge, from: 2},
	} {
		inBubble(t, func(t *testing.T, w *world) {
			a := w.start(t, 1)
			a.SetPeers(map[uint64]string{2: w.asked(t, func(g greeting) greeting {
				says.to = g.from
				return says
			})})
			answer := w.call(t, a.address).exchangeGreetings(kindFrames, 2, 1)
			if answer.kind != kindRefused || !strings.Contains(string(answer.contents), "could not be confirmed") {
				t.Errorf("%+v: answer is %d %q", says, answer.kind, answer.contents)
			}
		})
	}
}

const secretA, secretB = "the secret of ensemble a", "the secret of ensemble b"

func withSecret(secret string, optional bool) func(*member, *Config) {
	return func(_ *member, cfg *Config) { cfg.Secret, cfg.SecretOptional = []byte(secret), optional }
}

// P8: members with the same secret connect, others tell each other who lacks what. Members that
// prefer a secret, and do not require it, also talk to members without.
func TestP8_Secret(t *testing.T) {
	const lacks, differs = "member %d has no ensemble secret and member %d requires one", "the ensemble secret of member"
	for _, c := range []struct {
		name       string
		a, b       func(*member, *Config)
		says       string // both logs
		whoLacksIt int
	}{
		{name: "same", a: withSecret(secretA, false), b: withSecret(secretA, false)},
		{name: "preferred by one", a: withSecret(secretA, true), b: withSecret(secretA, false)},
		{name: "preferred by both", a: withSecret(secretA, true), b: withSecret(secretA, true)},
		{name: "preferred, and none", a: withSecret(secretA, true), b: withSecret("", false)},
		{name: "different", a: withSecret(secretA, false), b: withSecret(secretB, false), says: differs},
		{name: "preferred and different", a: withSecret(secretA, true), b: withSecret(secretB, true), says: differs},
		{name: "required, and none", a: withSecret(secretA, false), b: withSecret("", false), says: fmt.Sprintf(lacks, 2, 1)},
		{name: "none, and required", a: withSecret("", false), b: withSecret(secretA, false), says: fmt.Sprintf(lacks, 1, 2)},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, b := w.start(t, 1, c.a), w.start(t, 2, c.b)
				if c.says == "" {
					know(a, b)
					a.Send(2, []byte("hello"))
					b.expect("1: hello")
					return
				}
				a.SetPeers(map[uint64]string{2: b.address})
				b.SetPeers(map[uint64]string{1: a.address})
				time.Sleep(time.Minute)
				for _, m := range []*member{a, b} {
					if m.status(3-m.id).Connected || len(m.frames) > 0 {
						t.Errorf("member %d is connected", m.id)
					}
					if n := m.log.Count(c.says); n < 1 || n > 3 {
						t.Errorf("%d lines of member %d, want one for each direction:\n%s", n, m.id, m.log)
					}
				}
			})
		})
	}
}

// P8: of two servers that have the secret and the same id, the one at the member's address stays
// connected, whichever was first; the other is told why it is refused.
func TestP8_Copy(t *testing.T) {
	for _, first := range []string{"the member", "its copy"} {
		t.Run(first, func(t *testing.T) {
			everywhere(t, func(t *testing.T, w *world) {
				a, b := w.start(t, 1, withSecret(secretA, false)), w.start(t, 2, withSecret(secretA, false))
				a.SetPeers(map[uint64]string{2: b.address})
				a.await(2, "up")
				c := w.start(t, 2, withSecret(secretA, false))
				order := []*member{b, c}
				if first == "its copy" {
					order = []*member{c, b}
				}
				for _, m := range order {
					m.SetPeers(map[uint64]string{1: a.address})
					if m == b || first == "its copy" {
						m.await(1, "up")
					}
				}
				told := func() int { return c.log.Count("is another server started with the myid 2") }
				eventually(t, "the copy is told", func() bool { return told() > 0 || b.log.Count("lost connection") > 2 })
				for i := range 20 {
					b.Send(1, fmt.Appendf(nil, "%d", i))
					a.expect(fmt.Sprintf("2: %d", i))
					time.Sleep(time.Duration(i) * time.Millisecond)
				}
				if got := told(); got != 1 {
					t.Errorf("%d lines, want 1:\n%s", got, c.log)
				}
			})
		})
	}
}

// P8: nothing that was seen of a hello helps to say another, and a stranger learns nothing from a
// member that has a secret before the stranger has proved that it knows it.
func TestP8_Replay(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start(t, 1, withSecret(secretA, false))
		say := func(s *stranger, ext extension, reply func(asked greeting, said []byte) []byte) greeting {
			g := greeting{kind: kindFrames, from: 2, to: 1, contents: ext.append([]byte("i am 2"))}
			s.say(g.append(nil))
			asked := s.answer()
			if asked.kind != kindChallenge || bytes.Contains(asked.contents, []byte("i am")) {
				t.Fatalf("answer is %d %q", asked.kind, asked.contents)
			}
			s.say((&greeting{kind: kindProof, from: 2, to: 1, contents: reply(asked, g.append(nil))}).append(nil))
			return s.answer()
		}
		ext := extension{flags: flagSecret, nonce: newNonce()}
		var seen []byte
		good := func(asked greeting, said []byte) []byte {
			sum := proof([]byte(secretA), labelCaller, said, asked.append(nil))
			seen = sum[:]
			return seen
		}
		if answer := say(w.call(t, a.address), ext, good); answer.kind != kindAccepted {
			t.Fatalf("answer to a good proof is %d %q", answer.kind, answer.contents)
		}
		for name, reply := range map[string]func(greeting, []byte) []byte{
			"replayed": func(greeting, []byte) []byte { return seen },
			"none":     func(greeting, []byte) []byte { return nil },
			"reflected": func(asked greeting, said []byte) []byte {
				sum := proof([]byte(secretA), labelCalled, said, asked.append(nil))
				return sum[:]
			},
		} {
			if answer := say(w.call(t, a.address), ext, reply); answer.kind != kindRefused || !strings.Contains(string(answer.contents), "the ensemble secret of member 2") {
				t.Errorf("%s: answer is %d %q", name, answer.kind, answer.contents)
			}
		}
		if answer := w.call(t, a.address).exchangeGreetings(kindFrames, 2, 1); answer.kind != kindRefused {
			t.Errorf("answer without a secret is %d %q", answer.kind, answer.contents)
		}
	})
}

// P8: whoever answers at the address of a member does not become the member without the secret.
func TestP8_FalseAnswer(t *testing.T) {
	for name, say := range map[string]func(s *stranger, g greeting){
		"accepted": func(s *stranger, g greeting) { s.say((&greeting{kind: kindAccepted, from: 2, to: 1}).append(nil)) },
		"accepted, claimed": func(s *stranger, _ greeting) {
			ext := extension{flags: flagSecret}
			s.say((&greeting{kind: kindAccepted, from: 2, to: 1, contents: ext.append(nil)}).append(nil))
		},
		"a challenge, and no proof": func(s *stranger, _ greeting) {
			ext := extension{flags: flagSecret, nonce: newNonce()}
			s.say((&greeting{kind: kindChallenge, from: 2, to: 1, contents: ext.append(nil)}).append(nil))
			s.answer()
			s.say((&greeting{kind: kindAccepted, from: 2, to: 1, contents: ext.append(nil)}).append(nil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				address, calls := w.receptionist(t)
				a := w.start(t, 1, withSecret(secretA, false))
				a.SetPeers(map[uint64]string{2: address})
				s := <-calls
				say(s, s.answer())
				if state := <-a.statesOf(2); state != "down" {
					t.Errorf("the peer is %s", state)
				}
				if err := a.status(2).LastError; err == nil || !strings.Contains(err.Error(), "ensemble secret") {
					t.Errorf("last error is %v", err)
				}
				_ = s.Close()
			})
		})
	}
}

// A header with a check of its own shows any damaged byte of the length or type.
func TestTypeField_DamagedByte(t *testing.T) {
	for _, n := range []uint32{0, 1, 1000, 70_000, 200 << 20} {
		for typ := uint32(typeData); typ <= typeFailed; typ++ {
			for at := range 5 {
				for flip := 1; flip < 256; flip++ {
					length, kind := n, typ
					if at < 4 {
						length ^= uint32(flip) << (8 * at)
					} else {
						kind ^= uint32(flip)
					}
					if typeField(kind, int(length))>>8 == typeField(typ, int(n))>>8 {
						t.Fatalf("length %d, type %d: byte %d changed by %02x has the same check", n, typ, at, flip)
					}
				}
			}
		}
	}
}

// damagingConn flips a bit of the length of the first frame with a certain payload.
type damagingConn struct {
	net.Conn
	payload []byte
	done    *atomic.Bool
}

func (c *damagingConn) Write(b []byte) (int, error) {
	if at := bytes.Index(b, c.payload) - frameHeaderBytes; at >= 0 && !c.done.Swap(true) {
		b = bytes.Clone(b)
		b[at+2] ^= 1 // 64 KiB more
	}
	return c.Conn.Write(b)
}

// P1: a damaged length of a frame ends the connection at once, instead of making the receiver wait
// for the bytes.
func TestP1_DamagedLength(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var damaged atomic.Bool
		b := w.start(t, 2)
		l, address := w.listen(t, "")
		a := w.start(t, 1, func(m *member, cfg *Config) {
			cfg.Listener, m.address = l, address
			cfg.Dial = func(ctx context.Context, address string) (net.Conn, error) {
				conn, err := w.dial(ctx, address)
				return &damagingConn{conn, []byte("damaged"), &damaged}, err
			}
		})
		know(a, b)
		began := time.Now()
		a.Send(2, []byte("damaged"))
		a.await(2, "down")
		a.await(2, "up")
		a.Send(2, []byte("after"))
		b.expect("1: after")
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("it took %v", took)
		}
		if got := a.status(2).LastError; got == nil || !strings.Contains(got.Error(), "the header of a frame") {
			t.Errorf("last error is %v", got)
		}
	})
}

// P9: strangers do not flood the log, whatever they say.
func TestP9_LogFlood(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start(t, 1, func(m *member, _ *Config) {
			m.accept = func(from uint64, _ []byte) error { return fmt.Errorf("member %d is not configured", from) }
		})
		for i := range uint64(1000) {
			s := w.call(t, a.address)
			if answer := s.exchangeGreetings(kindFrames, 1000+i, 1+i%2); answer.kind != kindRefused {
				t.Fatalf("answer is %d %q", answer.kind, answer.contents)
			}
			_ = s.Close()
			synctest.Wait() // until a has left the connection: a crowd is refused for a third reason
		}
		if n := a.log.Count("refused"); n != 2 {
			t.Errorf("%d lines, want one for each of two reasons:\n%s", n, a.log)
		}
		time.Sleep(refusalLogInterval)
		w.call(t, a.address).exchangeGreetings(kindFrames, 5, 1)
		synctest.Wait()
		if n := a.log.Count("not_logged_before=499"); n != 1 {
			t.Errorf("%d lines say how many were left out:\n%s", n, a.log)
		}
		if got := a.Refused(); got["rejected"] != 501 || got["unknown_member"] != 500 {
			t.Errorf("counted %v", got)
		}
	})
}
