package cluster

import (
	"errors"
	"fmt"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// Of what kind an error is, for errors.Is. Its text says what is wrong.
var (
	// ErrNotFound: there is no such member, session or znode.
	ErrNotFound = errors.New("cluster: there is no such thing")
	// ErrState: there is, but it is in a state in which that can't be done, such as a member to be stopped that is down.
	ErrState = errors.New("cluster: that does not fit the state")
	// ErrInvalid: nobody could do that in any state.
	ErrInvalid = errors.New("cluster: that makes no sense")
)

// kindError is an error of one of the kinds above.
type classifiedError struct {
	kind error
	err  error
}

func (e *classifiedError) Error() string { return e.err.Error() }

func (e *classifiedError) Unwrap() []error { return []error{e.kind, e.err} }

// kindf returns an error of that kind with that text.
func errorf(kind error, format string, args ...any) error {
	return &classifiedError{kind, fmt.Errorf(format, args...)}
}

// ofServer says of what kind a server's error is. One that is not of any kind is returned as it is.
func classify(err error) error {
	var refused proto.ErrCode
	switch {
	case errors.Is(err, server.ErrNoSession):
		return &classifiedError{ErrNotFound, err}
	case errors.Is(err, server.ErrClosed), errors.As(err, &refused):
		return &classifiedError{ErrState, err} // it ended meanwhile, or the znodes that are there don't allow it
	}
	return err
}
