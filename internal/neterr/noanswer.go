package neterr

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// FirstAnswer is how long a client waits for a server's first byte, unless its user says otherwise.
const FirstAnswer = 5 * time.Second

// ErrNoAnswer is the error of a server that closed the connection without an answer.
var ErrNoAnswer = errors.New("the connection was closed without an answer")

// NoAnswer is the error of a server that has sent nothing for this long.
type NoAnswer time.Duration

// Error returns the time that was waited.
func (n NoAnswer) Error() string { return "no answer within " + time.Duration(n).String() }

// Is reports whether target is an error of a deadline, of package os or context.
func (n NoAnswer) Is(target error) bool {
	return target == os.ErrDeadlineExceeded || target == context.DeadlineExceeded
}

// Timeout implements net.Error, as context.DeadlineExceeded does.
func (NoAnswer) Timeout() bool { return true }

// Temporary implements net.Error.
func (NoAnswer) Temporary() bool { return true }

// Ended returns the error of ctx, with its cause, if ctx ended before an operation failed with err,
// and otherwise err. Package net reports a deadline a moment before ctx ends.
func Ended(ctx context.Context, err error) error {
	if deadline, ok := ctx.Deadline(); err != nil && ok && !time.Now().Before(deadline) {
		<-ctx.Done()
	}
	if err == nil || ctx.Err() == nil {
		return err
	}
	cause := context.Cause(ctx)
	if !errors.Is(cause, ctx.Err()) {
		cause = fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return cause
}
