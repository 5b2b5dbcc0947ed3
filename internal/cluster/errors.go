package cluster

import (
	"errors"
	"fmt"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// The classes of errors, for errors.Is.
var (
	// ErrNotFound: there is no such member, session or znode.
	ErrNotFound = errors.New("cluster: not found")
	// ErrState: the present state does not allow it, for example to stop a member that is down.
	ErrState = errors.New("cluster: the state does not allow the operation")
	// ErrInvalid: no state allows the operation.
	ErrInvalid = errors.New("cluster: invalid")
)

type classifiedError struct {
	kind error
	err  error
}

func (e *classifiedError) Error() string { return e.err.Error() }

func (e *classifiedError) Unwrap() []error { return []error{e.kind, e.err} }

func errorf(kind error, format string, args ...any) error {
	return &classifiedError{kind, fmt.Errorf(format, args...)}
}

// classify adds the class to a server's error. Errors without a class are returned unchanged.
func classify(err error) error {
	var refused proto.ErrCode
	switch {
	case errors.Is(err, server.ErrNoSession):
		return &classifiedError{ErrNotFound, err}
	case errors.Is(err, server.ErrClosed), errors.As(err, &refused):
		// The server has ended, or the znodes do not allow the operation.
		return &classifiedError{ErrState, err}
	}
	return err
}
