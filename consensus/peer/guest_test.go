package peer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/testca"
)

// host lets a member take guests, whose hellos are their addresses. The Handler refuses callers
// that are neither known nor guests.
func host(m *member, cfg *Config) {
	cfg.Guest = func(_ uint64, hello []byte) string { return string(hello) }
	m.judges = func(from uint64, known bool) error {
		if known {
			return nil
		}
		return fmt.Errorf("member %d is not configured", from)
	}
}

// guest is a member that says where it is.
func guest(w *world, t testing.TB) func(m *member, cfg *Config) {
	return func(m *member, cfg *Config) {
		if cfg.Listener == nil {
			cfg.Listener, m.address = w.listen(t, "")
		}
		m.hello = m.address
	}
}

// refusesGuest checks that a member does not take b, which calls it, as a guest.
func (m *member) refusesGuest(b *member) {
	m.t.Helper()
	b.SetPeers(map[uint64]string{m.id: m.address})
	b.await(m.id, "down")
	if err := b.status(m.id).LastError; err == nil || !strings.Contains(err.Error(), "is not configured") {
		m.t.Errorf("the guest is told %v", err)
	}
	if s := m.Status(); len(s) != 0 {
		m.t.Errorf("peers of the host: %+v", s)
	}
}

// P8: with the secret of the ensemble, a member without an address here is taken as a guest, for as
// long as it is there; without the secret it is refused.
func TestP8_GuestWithSecret(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		secret := func(_ *member, cfg *Config) { cfg.Secret = []byte("known to the members only") }
		a := w.start(t, 1, host, secret)
		b := w.start(t, 2, guest(w, t), secret)
		b.SetPeers(map[uint64]string{1: a.address})
		b.await(1, "up")
		a.await(2, "up")
		a.SetPeers(map[uint64]string{3: "nobody"}) // guests stay
		a.Send(2, []byte("welcome"))
		b.expect("1: welcome")
		b.SetPeers(nil)
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		a.await(2, "down")
		eventually(t, "the guest is forgotten", func() bool { return len(a.Status()) == 1 })
		c := w.start(t, 2, guest(w, t), func(_ *member, cfg *Config) { cfg.Secret = []byte("known to somebody else") })
		c.SetPeers(map[uint64]string{1: a.address})
		c.await(1, "down")
		if err := c.status(1).LastError; err == nil || !strings.Contains(err.Error(), "secret") {
			t.Errorf("a guest with another secret is told %v", err)
		}
	})
}

// P8: without a secret, a guest is taken on one machine only, where it answers at its address.
func TestP8_GuestByAddress(t *testing.T) {
	t.Run("this machine", func(t *testing.T) {
		w := &world{}
		a, b := w.start(t, 1, host), w.start(t, 2, guest(w, t))
		b.SetPeers(map[uint64]string{1: a.address})
		b.await(1, "up")
		a.await(2, "up")
		a.Send(2, []byte("welcome"))
		b.expect("1: welcome")
	})
	t.Run("another's address", func(t *testing.T) {
		w := &world{}
		other := w.start(t, 2)
		a, b := w.start(t, 1, host), w.start(t, 2)
		b.hello = other.address
		b.SetPeers(map[uint64]string{1: a.address})
		b.await(1, "down")
		if err := b.status(1).LastError; err == nil || !strings.Contains(err.Error(), "is not making this connection") {
			t.Errorf("an impostor is told %v", err)
		}
		if s := a.Status(); len(s) != 0 {
			t.Errorf("peers of the host: %+v", s)
		}
	})
	inBubble(t, func(t *testing.T, w *world) { // the address of a pipe is not a loopback address
		w.start(t, 1, host).refusesGuest(w.start(t, 2, guest(w, t)))
	})
}

// P8: a guest with a certificate needs a URI that names it and the ensemble.
func TestP8_GuestWithCertificate(t *testing.T) {
	ca := testca.New(t, "members")
	inBubble(t, func(t *testing.T, w *world) {
		certificate := func(uris ...string) func(m *member, cfg *Config) {
			return func(m *member, cfg *Config) {
				cfg.Listener, m.address = w.listen(t, "")
				cfg.TLS = certified(t, ca, TLSRequired, testca.Spec{Hosts: append(uris, hostOfAddress(m.address))})
				cfg.TLS.Ensemble = "e"
			}
		}
		a := w.start(t, 1, certificate("gozkd://e/1"), host)
		a.refusesGuest(w.start(t, 2, certificate(), guest(w, t)))
		b := w.start(t, 2, certificate("gozkd://e/2"), guest(w, t))
		b.SetPeers(map[uint64]string{1: a.address})
		b.await(1, "up")
		a.await(2, "up")
		anyEnsemble := w.start(t, 3, certificate("gozkd://e/3"), host, func(_ *member, cfg *Config) { cfg.TLS.Ensemble = "" })
		anyEnsemble.refusesGuest(w.start(t, 2, certificate("gozkd://e/2"), guest(w, t)))
	})
}
