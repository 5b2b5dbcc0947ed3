package recipes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

// hangUp is the error of a write whose connection the server has closed.
func hangUp() error {
	e := &client.Error{Op: "setData", Code: proto.ErrConnectionLoss, Cause: io.EOF, Unknown: true}
	return nativeError(context.Background(), e)
}

// sendWith lets r end with err.
func sendWith(ctx context.Context, w *window, r request, err error) error {
	_, err = within(ctx, w, r, func(context.Context) (struct{}, error) { return struct{}{}, err })
	return err
}

// newTestWindow returns a window of a Client that is connected.
func newTestWindow() *window {
	k := newCore(config{suspended: func() time.Duration { return 0 }})
	k.conn = &connected{}
	return k.window
}

// TestWindow_LostTogether: identical requests that are lost together count as one loss.
func TestWindow_LostTogether(t *testing.T) {
	w, r := newTestWindow(), request{op: "set", path: "/a"}
	var turns []*turn
	for range 10 {
		turn, err := w.enter(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		turns = append(turns, turn)
	}
	for _, turn := range turns {
		if w.leave(t.Context(), turn, hangUp(), 0) {
			t.Error("taken for the server's answer at once")
		}
	}
	for losses := 2; losses < smallLosses; losses++ {
		if err := sendWith(t.Context(), w, r, hangUp()); errors.Is(err, ErrHungUp) {
			t.Errorf("taken for the server's answer after %d losses", losses)
		}
	}
	if err := sendWith(t.Context(), w, r, hangUp()); !errors.Is(err, ErrHungUp) {
		t.Error(err)
	}
}

// TestWindow_ManySuspects: a request that the server answers by hanging up is recognised after any
// number of others were lost and not repeated.
func TestWindow_ManySuspects(t *testing.T) {
	w := newTestWindow()
	for i := range 3 * mostSuspects {
		_ = sendWith(t.Context(), w, request{op: "set", path: fmt.Sprint("/", i)}, hangUp())
	}
	if len(w.suspects) > mostSuspects {
		t.Errorf("%d suspects", len(w.suspects))
	}
	r := request{op: "set", path: "/a"}
	for range smallLosses - 1 {
		if err := sendWith(t.Context(), w, r, hangUp()); errors.Is(err, ErrHungUp) {
			t.Error(err)
		}
	}
	if err := sendWith(t.Context(), w, r, hangUp()); !errors.Is(err, ErrHungUp) {
		t.Error(err)
	}
}

// TestWindow_GaveUp: a suspect whose caller gives up is forgotten.
func TestWindow_GaveUp(t *testing.T) {
	w, r := newTestWindow(), request{op: "set", path: "/a"}
	ctx, cancel := context.WithCancel(t.Context())
	_ = sendWith(ctx, w, r, hangUp())
	if len(w.suspects) != 1 {
		t.Fatalf("%d suspects", len(w.suspects))
	}
	cancel()
	_ = sendWith(ctx, w, r, hangUp())
	if len(w.suspects) != 0 {
		t.Errorf("%d suspects", len(w.suspects))
	}
	_ = sendWith(t.Context(), w, r, hangUp())
	if _, err := w.enter(t.Context(), request{op: "get", path: "/b"}); err != nil { // r waits for its end
		t.Fatal(err)
	}
	if err := sendWith(ctx, w, r, nil); classify(err) != stopped || len(w.suspects) != 0 {
		t.Errorf("while waiting: %v, %d suspects", err, len(w.suspects))
	}
}

// TestLoss: only what the other side has done counts against a request.
func TestLoss(t *testing.T) {
	answer := nativeError(context.Background(), &client.Error{Code: proto.ErrConnectionLoss, Unknown: true})
	if lost, _ := lossOf("set", answer); lost {
		t.Error("a server's answer that the outcome is unknown is taken for a loss")
	}
	for _, op := range []string{"", "delete", "sync"} {
		if lost, _ := lossOf(op, hangUp()); lost {
			t.Errorf("%q is a suspect", op)
		}
	}
	for cause, want := range map[error]bool{
		io.EOF: true, syscall.ECONNRESET: true, net.ErrClosed: false, os.ErrDeadlineExceeded: false,
	} {
		for _, unknown := range []bool{false, true} {
			e := &client.Error{Code: proto.ErrConnectionLoss, Cause: cause, Unknown: unknown}
			if lost, byServer := lossOf("set", nativeError(context.Background(), e)); !lost || byServer != want {
				t.Errorf("%v, unknown: %v: lost %v, by the server %v", cause, unknown, lost, byServer)
			}
		}
	}
}

// connected is a transport with a session and nothing else, which counts how often it is asked.
type connected struct {
	transport
	asked atomic.Int64
}

func (c *connected) place() (session int64, server string) {
	c.asked.Add(1)
	return 1, "a"
}

// TestWindow_ManyWait: how often the Client looks for its connection does not depend on how many
// requests wait.
func TestWindow_ManyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiting, seconds = 100, 10
		w := newTestWindow()
		w.k.timeout.Store(int64(time.Hour))
		var first *turn
		ctx, cancel := context.WithCancel(t.Context())
		for range firstRequests {
			var err error
			if first, err = w.enter(ctx, request{op: "exists", path: "/a"}); err != nil {
				t.Fatal(err)
			}
		}
		var entered int64
		var wg sync.WaitGroup
		for range waiting {
			wg.Go(func() {
				if _, err := w.enter(ctx, request{op: "exists", path: "/a"}); err == nil {
					atomic.AddInt64(&entered, 1)
				} else if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		time.Sleep(seconds * time.Second)
		if n := w.k.conn.(*connected).asked.Load(); n > seconds+1 {
			t.Errorf("asked %d times in %d seconds", n, seconds)
		}
		w.leave(ctx, first, nil, 0)
		time.Sleep(time.Millisecond)
		cancel()
		wg.Wait()
		if entered == 0 {
			t.Error("no request entered after one had left")
		}
		time.Sleep(2 * longPause) // the sweeper ends
	})
}
