package peer

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"
)

// A peer with several addresses is reached at the first that answers. One that does not answer costs
// AddressPatience.
func TestDial_SeveralAddresses(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start(t, 1)
		b := w.start(t, 2, func(_ *member, cfg *Config) {
			cfg.AddressPatience = 300 * time.Millisecond
			cfg.Dial = func(ctx context.Context, address string) (net.Conn, error) {
				if address == "silent" {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return w.dial(ctx, address)
			}
		})
		a.SetPeers(map[uint64]string{2: "nobody|" + b.address})
		began := time.Now()
		b.SetPeers(map[uint64]string{1: "nobody|silent|" + a.address})
		b.await(1, "up")
		a.await(2, "up")
		if took := time.Since(began); took < 300*time.Millisecond || took > 600*time.Millisecond {
			t.Errorf("connected after %v", took)
		}
		b.SetPeers(map[uint64]string{1: "nobody|nowhere"})
		b.await(1, "refused")
		b.SetPeers(map[uint64]string{1: "nobody|silent|nowhere"})
		b.await(1, "down") // and not refused: it may be there
		eventually(t, "the reason is the silent address", func() bool {
			return strings.Contains(b.status(1).LastError.Error(), "deadline")
		})
	})
}

// A long AddressPatience leaves time for the other addresses: when this member connects, and when it
// asks the peer whether a connection is its own.
func TestDial_PatienceIsShared(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		patient := func(_ *member, cfg *Config) {
			cfg.AddressPatience = time.Hour
			cfg.Dial = func(ctx context.Context, address string) (net.Conn, error) {
				if address == "silent" {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return w.dial(ctx, address)
			}
		}
		a, b := w.start(t, 1, patient), w.start(t, 2, patient)
		a.SetPeers(map[uint64]string{2: "silent|" + b.address})
		b.SetPeers(map[uint64]string{1: "silent|silent|" + a.address})
		a.await(2, "up")
		b.await(1, "up")
	})
}
