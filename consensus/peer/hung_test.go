package peer

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/memnet"
)

// hungHandler takes nothing of a checkpoint until block is closed.
type hungHandler struct{ block chan struct{} }

func (hungHandler) Hello() []byte                     { return nil }
func (hungHandler) Accept(uint64, []byte, bool) error { return nil }
func (hungHandler) Receive(uint64, []byte)            {}
func (hungHandler) Drained()                          {}
func (h hungHandler) ReceiveCheckpoint(uint64, io.ReadCloser) error {
	<-h.block
	return errors.New("the disk came back")
}
func (hungHandler) Up(uint64)         {}
func (hungHandler) Down(uint64, bool) {}

// A receiver whose disk hangs must not keep the sender for ever: the sender writes no checkpoint
// meanwhile, so its log would grow until the disk is full.
func TestSendCheckpoint_HungReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, block := memnet.New(time.Millisecond), make(chan struct{})
		begin := func(id, other uint64, host, otherHost string) *Network {
			l, err := network.Listen(host + ":1")
			if err != nil {
				t.Fatal(err)
			}
			n, err := New(Config{
				Self: id, Listener: l, Handler: hungHandler{block}, Peers: map[uint64]string{other: otherHost + ":1"},
				Dial: func(ctx context.Context, address string) (net.Conn, error) { return network.Dial(ctx, host, address) },
			})
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		sender, receiver := begin(1, 2, "a", "b"), begin(2, 1, "b", "a")
		start := time.Now()
		err := sender.SendCheckpoint(t.Context(), 2, func(w io.Writer) error {
			_, err := w.Write(make([]byte, 8<<20))
			return err
		})
		if took := time.Since(start); !errors.Is(err, ErrSilent) || took < checkpointPatience || took > checkpointPatience+time.Minute {
			t.Errorf("%v after %v", err, took)
		}
		close(block)
		if err := errors.Join(sender.Close(), receiver.Close()); err != nil {
			t.Error(err)
		}
	})
}
