package sim

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/gozkd/gozkd/consensus/peer"
)

// impostor is a stranger who says hello as a member, and sends frames that no member would send.
// It must not get as far as that.
type impostor struct {
	network *peer.Network
	rng     *rand.Rand

	mu    sync.Mutex
	hello []byte // of the victim, whose ensemble the impostor pretends to belong to
}

// impersonate lets an impostor call m until the fault ends: as another member, which may be up or
// down, or as a member that is not configured.
func impersonate(n *nemesis, m *member, s step) func() {
	as := uint64(200)
	if other := n.w.members[s.other%len(n.w.members)]; other != m {
		as = uint64(other.id)
	}
	i := &impostor{rng: rand.New(rand.NewPCG(n.w.plan.seed, uint64(s.other))), hello: []byte{0}}
	n.strangers++
	host := "stranger" + string(rune('a'+n.strangers%26))
	l, err := n.w.network.Listen(host + ":2888")
	if err != nil {
		return nil // another one is at work
	}
	i.network, err = peer.New(peer.Config{Self: as, Listener: l, Handler: i, Dial: func(ctx context.Context, address string) (net.Conn, error) {
		return n.w.network.Dial(ctx, host, address)
	}})
	if err != nil {
		panic(err) // the configuration is the same for every run
	}
	i.network.SetPeers(map[uint64]string{uint64(m.id): m.peerAddress()})
	return func() {
		if err := i.network.Close(); err != nil {
			n.w.complain("impostor: %v", err)
		}
	}
}

// Hello returns the victim's own hello once that is known.
func (i *impostor) Hello() []byte {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.hello
}

// Accept remembers the victim's hello.
func (i *impostor) Accept(_ uint64, hello []byte, _ bool) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.hello = append([]byte(nil), hello...)
	return nil
}

// Up sends garbage.
func (i *impostor) Up(victim uint64) {
	for range 1 + i.rng.IntN(30) {
		frame := make([]byte, i.rng.IntN(1+1<<i.rng.IntN(12)))
		for at := range frame {
			frame[at] = byte(i.rng.Uint32() >> (8 * i.rng.IntN(2)) & 0xff)
		}
		if len(frame) > 0 {
			frame[0] = byte(i.rng.IntN(12)) // the kind
		}
		const application, reports = 5, 4
		if len(frame) > 1 && frame[0] == application {
			frame[1] |= reports // no report that servers understand
		}
		i.network.Send(victim, frame)
	}
	time.AfterFunc(time.Second, func() { i.network.Drop(victim) }) // and again
}

// Down does nothing.
func (i *impostor) Down(uint64, bool) {}

// Receive drops what a member sends to the impostor.
func (i *impostor) Receive(uint64, []byte) {}

func (i *impostor) Drained() {}

// ReceiveCheckpoint drops a checkpoint.
func (i *impostor) ReceiveCheckpoint(_ uint64, r io.ReadCloser) error {
	_, err := io.Copy(io.Discard, r)
	return err
}
