package recipes

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/go-zookeeper/zk"
)

// Errors of this package. Those of the server are the sentinels of package zk, found with errors.Is.
var (
	// ErrClosed means that the Client was closed, or the connection that it wraps.
	ErrClosed = errors.New("recipes: client is closed")
	// ErrSessionLost is the cause of a session's Context once the session is over, or may be.
	ErrSessionLost = errors.New("recipes: session is lost")
	// ErrOutcomeUnknown means that a write may have been applied, now or later: its answer was lost, or nobody waited for it.
	ErrOutcomeUnknown = errors.New("recipes: outcome unknown")
	// ErrNotHeld means that a write was refused because what guards it is not held any more. Nothing was written.
	ErrNotHeld = errors.New("recipes: not held any more")
)

// Error says which operation failed.
type Error struct {
	Op   string // such as "create"
	Path string // as the caller named it
	Err  error
	// Unknown: it may have been applied all the same. errors.Is(err, ErrOutcomeUnknown) says the same.
	Unknown bool
}

func (e *Error) Error() string {
	s := "recipes: " + e.Op + " " + e.Path + ": " + e.Err.Error()
	if e.Unknown {
		s += " (it may have been applied)"
	}
	return s
}

// Unwrap returns Err, and ErrOutcomeUnknown where that is so.
func (e *Error) Unwrap() []error {
	if e.Unknown {
		return []error{e.Err, ErrOutcomeUnknown}
	}
	return []error{e.Err}
}

// Refused reports whether the server said so, or the request was never valid, and nothing was done: trying the same again at once changes
// nothing. Else the connection was lost, or ctx ended, or the Client was closed.
func (e *Error) Refused() bool { return !e.Unknown && classify(e.Err) == answered }

// unsettled is an answer of the server to a repeated write that does not tell whether the first was applied.
type ambiguousError struct{ error }

func (e *ambiguousError) Unwrap() error { return e.error }

// class is what an error of a call tells about the request.
type class int

const (
	answered   class = iota // the server said so, or the request was never valid: trying again changes nothing
	notSent                 // it did not reach a server, or was refused unseen: trying again is safe
	replyLost               // it may have been applied
	notAwaited              // nobody waits for the answer any more: ctx ended
	stopped                 // it was not sent, and no other will be
)

// ctxError is that of a call whose ctx has ended.
type ctxError struct {
	err, cause error
	sent       bool // before its request was sent, or before its answer came
}

func newCtxError(ctx context.Context, sent bool) error {
	return &ctxError{ctx.Err(), context.Cause(ctx), sent}
}

func (e *ctxError) Error() string   { return e.cause.Error() }
func (e *ctxError) Unwrap() []error { return []error{e.err, e.cause} }

// wireError marks what the network said, for the connections that Connect makes.
type networkError struct{ error }

func (e *networkError) Unwrap() error { return e.error }

// classify is the one place that knows how go-zookeeper reports a lost connection: as ErrConnectionClosed where it flushes
// what waits for an answer, as ErrNoServer where it flushes what was never sent, as ErrSessionExpired for what waited when the
// session ended, and raw where writing to the connection failed.
func classify(err error) class {
	var (
		gaveUp *ctxError
		wire   *networkError
		netErr net.Error
		errno  syscall.Errno
	)
	switch {
	case err == nil:
		return answered
	case errors.As(err, &gaveUp) && gaveUp.sent:
		return notAwaited
	case gaveUp != nil:
		return stopped
	case errors.Is(err, ErrClosed), errors.Is(err, zk.ErrClosing):
		return stopped
	case errors.Is(err, zk.ErrNoServer), errors.Is(err, zk.ErrSessionMoved), isCode(err, -127): // throttled: not done, to be tried again later
		return notSent
	case errors.Is(err, zk.ErrConnectionClosed), errors.Is(err, zk.ErrSessionExpired), errors.As(err, &wire):
		return replyLost
	case errors.As(err, &netErr), errors.As(err, &errno), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, io.ErrClosedPipe), errors.Is(err, net.ErrClosed), errors.Is(err, os.ErrDeadlineExceeded):
		return replyLost
	case isCode(err, -4), isCode(err, -7): // connection loss, operation timeout
		return replyLost
	}
	return answered
}

// isCode recognizes the codes for which go-zookeeper has no sentinel: all that is left of them is a text.
func isCode(err error, code int32) bool {
	text, ok := strings.CutPrefix(err.Error(), "unknown error: ")
	return ok && text == itoa(code)
}
