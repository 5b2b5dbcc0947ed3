package peer

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/testca"
)

// clientHello returns the first message of a caller with TLS.
func clientHello(t testing.TB) []byte {
	ours, theirs := net.Pipe()
	// Ends when theirs is closed.
	go func() { _ = tls.Client(ours, &tls.Config{InsecureSkipVerify: true}).Handshake() }()
	b := make([]byte, 16<<10)
	n, err := theirs.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close()
	return b[:n]
}

// P9 with TLS: strangers that say nothing, that begin a handshake, or that answer none of it, on
// one host or on many, do not keep a member out, and hold no turn to compute.
func TestP9_StrangersWithTLS(t *testing.T) {
	ca := testca.New(t, "members")
	hello := clientHello(t)
	for name, said := range map[string][]byte{"nothing": nil, "one byte": hello[:1], "half": hello[:len(hello)/2], "all": hello, "plain": []byte(magic)} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				b := w.start(t, 2, w.secured(t, ca, TLSDialed))
				a, come := w.onHosts(t, func(cfg *Config) {
					cfg.TLS = certified(t, ca, TLSDialed, testca.Spec{Hosts: []string{"pipe-1"}})
					cfg.Peers = map[uint64]string{2: b.address}
				})
				a.await(2, "up")
				for i := range maxLobby + 64 {
					if i%64 == 0 {
						come(net.IPv4(10, 0, 0, byte(i/64)).String())
					}
					s := w.call(t, a.address)
					if len(said) > 0 {
						s.say(said)
					}
				}
				come("10.0.0.1") // a member on the host of strangers
				began := time.Now()
				b.SetPeers(map[uint64]string{1: a.address})
				b.await(1, "up")
				if took := time.Since(began); took > 0 {
					t.Errorf("a member needs %v to connect", took)
				}
				if n := a.handshakes.Len(); n != 0 {
					t.Errorf("%d turns are held by callers that are awaited", n)
				}
				time.Sleep(3 * silenceTimeout)
				synctest.Wait()
				if n := a.lobby.Len() + a.handshakes.Len(); n != 0 {
					t.Errorf("%d are left", n)
				}
			})
		})
	}
}

// P9: a handshake that is too long is cut off.
func TestP9_LongHandshake(t *testing.T) {
	ca := testca.New(t, "members")
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start(t, 1, w.secured(t, ca, TLSRequired))
		s := w.call(t, a.address)
		record := append([]byte{0x16, 3, 1, 0x40, 0}, make([]byte, 16<<10)...)
		record[5], record[6] = 1, 2 // a ClientHello of 128 KiB
		// The rest of a refused handshake may be read, and dropped, so that the caller gets the
		// alert.
		for sent, err := 0, error(nil); sent < 2*maxHandshake && err == nil; {
			var n int
			n, err = s.Write(record)
			sent += n
			record[5], record[6] = 0, 0
		}
		synctest.Wait()
		if a.Refused()["tls"] != 1 {
			t.Errorf("refused: %v", a.Refused())
		}
	})
}

// T1: whatever a stranger says first, on a port for both kinds it is read as one of them,
// unchanged, and nothing is accepted.
func FuzzDetection(f *testing.F) {
	ca := testca.New(f, "members")
	cfg := certified(f, ca, TLSDialed, testca.Spec{})
	hello := greeting{kind: kindFrames, from: 2, to: 1, contents: []byte("i am 2")}
	f.Add(hello.append(nil))
	f.Add(clientHello(f))
	f.Add([]byte{0x16})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &member{t: t, id: 1, frames: make(chan string, 1)}
		m.accept = func(uint64, []byte) error { t.Error("a stranger is judged as a member"); return nil }
		n := newNetwork(Config{Self: 1, Handler: m, Secret: []byte(secretA), MaxFrame: 1 << 20, TLS: cfg, Logger: hclog.NewNullLogger()})
		defer n.stop(ErrClosed)
		ctx, cancel := context.WithCancelCause(n.life)
		v := &visitor{conn: &scripted{in: bytes.NewReader(b)}, cancel: cancel, host: "h", until: time.Now().Add(time.Minute)}
		err := n.secure(ctx, v)
		plain := len(b) > 0 && b[0] != 0x16
		if plain != (err == nil) {
			t.Fatalf("%x: %v", b, err)
		}
		if plain {
			if all, err := io.ReadAll(v.stream); err != nil || !bytes.Equal(all, b) || linkTLS(v.stream) != "" {
				t.Errorf("%x was read as %x, %v", b, all, err)
			}
		}
	})
}

// scripted is a connection whose other side has said everything, and does not listen.
type scripted struct {
	net.Conn // nil: other methods are not called
	in       *bytes.Reader
}

func (s *scripted) Read(b []byte) (int, error)       { return s.in.Read(b) }
func (s *scripted) Write(b []byte) (int, error)      { return len(b), nil }
func (s *scripted) Close() error                     { return nil }
func (s *scripted) SetDeadline(time.Time) error      { return nil }
func (s *scripted) SetReadDeadline(time.Time) error  { return nil }
func (s *scripted) SetWriteDeadline(time.Time) error { return nil }
