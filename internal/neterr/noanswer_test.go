package neterr

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestEnded checks that the end of ctx wins over the error that it causes, with its cause, and that
// what the caller may test for is found in it.
func TestEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent, cancel := context.WithTimeoutCause(t.Context(), time.Second, NoAnswer(time.Second))
		defer cancel()
		if err := Ended(silent, io.EOF); !errors.Is(err, io.EOF) {
			t.Errorf("before the deadline: %v", err)
		}
		time.Sleep(time.Second)
		err := Ended(silent, &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded})
		if err == nil || err.Error() != "no answer within 1s" ||
			!errors.Is(err, os.ErrDeadlineExceeded) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("at the deadline: %v", err)
		}
		if timeout := net.Error(nil); !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("at the deadline: %v, which is no timeout", err)
		}
		if err := Ended(silent, nil); err != nil {
			t.Errorf("a success: %v", err)
		}
		interrupted, interrupt := context.WithCancelCause(t.Context())
		interrupt(io.ErrShortWrite)
		if err := Ended(interrupted, io.EOF); !errors.Is(err, context.Canceled) || !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("interrupted: %v", err)
		}
	})
}
