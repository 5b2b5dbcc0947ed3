package recipes

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// Errors of this package. The server's errors are the codes of package proto. With errors.Is they
// are also the errors of package zk, such as proto.ErrNoNode.
var (
	// ErrClosed means that the recipe, its Client, or the wrapped connection was closed, or that
	// the ctx of Start has ended.
	ErrClosed = errors.New("recipes: closed")
	// ErrNoServer means that the request was not sent, because there was no connection.
	ErrNoServer error = noServer{}
	// ErrSessionLost is the cause of a session's Context once the session has ended or may have.
	ErrSessionLost = errors.New("recipes: session is lost")
	// ErrOutcomeUnknown means that a write may have been applied, or may still be: its answer was
	// lost, or the caller stopped waiting.
	ErrOutcomeUnknown = errors.New("recipes: outcome unknown")
	// ErrNotStarted is the error of waiting for something whose Start was not called.
	ErrNotStarted = errors.New("recipes: not started: call Start before waiting")
	// ErrNotHeld means that a write was refused because the hold that guards the write is gone.
	// Nothing was written.
	ErrNotHeld = errors.New("recipes: no longer held")
	// ErrNotAcquired means that somebody else has what was asked for, or waits ahead of the caller.
	ErrNotAcquired = errors.New("recipes: not acquired")
	// ErrTaken means that the znode exists and belongs to another session, or is an ephemeral
	// although none was requested.
	ErrTaken = errors.New("recipes: taken by another session")
	// ErrArgument means that a name, number or option is not valid. Nothing was written.
	ErrArgument = errors.New("recipes: invalid argument")
	// ErrHungUp means that the server closed the connection instead of answering the request, again
	// when the request was repeated alone: twice if the request has 64 KiB or more, otherwise ten
	// times, because an ensemble in trouble closes connections whatever the requests. Perhaps the
	// request or its reply is too large, or the server does not know the operation.
	ErrHungUp = errors.New("recipes: the server closes the connection in answer to this request")
	// ErrFormat means that the data of a znode are not in the format of the recipe.
	ErrFormat = errors.New("recipes: data in another format")
)

// noServer is the type of ErrNoServer, which is also zk.ErrNoServer of go-zookeeper.
type noServer struct{}

func (noServer) Error() string        { return "recipes: could not connect to a server" }
func (noServer) Is(target error) bool { return target.Error() == "zk: could not connect to a server" }

// Error says which operation failed.
type Error struct {
	Op   string // such as "create"
	Path string // as the caller gave it; "" if there is none
	Err  error
	// Unknown is set if the operation may have been applied nevertheless. errors.Is(err,
	// ErrOutcomeUnknown) then reports true. After a lost answer a write is repeated only if the
	// znodes' zxids prove that the write was not applied, or on a Client of Idempotent.
	Unknown bool
}

func (e *Error) Error() string {
	what := strings.TrimSuffix(fmt.Sprintf("%s %.1024s", e.Op, e.Path), " ")
	s := "recipes: " + what + ": " + e.Err.Error()
	if e.Unknown {
		s += " (it may have been applied)"
	}
	return s
}

// Unwrap returns Err, and ErrOutcomeUnknown if Unknown is set.
func (e *Error) Unwrap() []error {
	if e.Unknown {
		return []error{e.Err, ErrOutcomeUnknown}
	}
	return []error{e.Err}
}

// Refused reports whether err is an *Error that says that the server refused a request, or that the
// request was invalid: nothing was applied, and a repetition would fail again. So it does for
// ErrHungUp, after which something may have been applied. Otherwise the connection was lost, ctx
// ended, or the Client was closed.
func Refused(err error) bool {
	var e *Error
	return errors.As(err, &e) && (!e.Unknown && classify(e.Err) == answered || errors.Is(err, ErrHungUp))
}

// IsLost reports whether err says that a Hold or a place in line was lost: with its session, or
// because somebody deleted its znode.
func IsLost(err error) bool {
	return errors.Is(err, ErrSessionLost) || errors.Is(err, ErrNotHeld)
}

// ambiguousError is the server's answer to a repeated write, or to a read after a lost answer, that
// leaves open whether the first attempt was applied.
type ambiguousError struct{ error }

func (e *ambiguousError) Unwrap() error { return e.error }

// ambiguous returns err, as an ambiguousError if the server has answered: the answer does not say
// what became of an earlier attempt, and a retry changes nothing.
func ambiguous(err error) error {
	if err != nil && classify(err) == answered {
		return &ambiguousError{err}
	}
	return err
}

// class says what happened to a request, as far as the error of the call shows.
type class int

const (
	// the server answered, or the request was invalid: a retry changes nothing
	answered   class = iota
	notSent          // not sent, or refused before processing: safe to retry
	replyLost        // may have been applied
	notAwaited       // sent, and ctx ended before the answer, or no answer will come
	stopped          // not sent, and no later request will be
)

type ctxError struct {
	err, cause error
	sent       bool // the request had been sent when ctx ended
}

func newCtxError(ctx context.Context, sent bool) error {
	return &ctxError{ctx.Err(), context.Cause(ctx), sent}
}

func (e *ctxError) Error() string   { return e.cause.Error() }
func (e *ctxError) Unwrap() []error { return []error{e.err, e.cause} }

func classify(err error) class {
	gaveUp := (*ctxError)(nil)
	switch {
	case err == nil:
		return answered
	case errors.As(err, &gaveUp) && gaveUp.sent, errors.Is(err, ErrHungUp):
		return notAwaited
	case gaveUp != nil, errors.Is(err, ErrClosed):
		return stopped
	case errors.Is(err, ErrNoServer), errors.Is(err, proto.ErrSessionMoved), errors.Is(err, proto.ErrThrottledOp), errors.Is(err, proto.ErrNotReadOnly):
		return notSent
	case errors.Is(err, proto.ErrConnectionLoss), errors.Is(err, proto.ErrOperationTimeout):
		return replyLost
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded): // a recipe waited for something else
		return stopped
	}
	return answered
}
