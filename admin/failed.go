package admin

import (
	"errors"

	"github.com/gozkd/gozkd/server"
)

// ZooKeeper's texts.
var (
	errNoAuth           = errors.New("Auth info is missing for the command") //nolint:staticcheck // what a client is shown
	errNotAuthenticated = errors.New("Not authenticated")                    //nolint:staticcheck // the same
	errNotAuthorized    = errors.New("Not authorized")                       //nolint:staticcheck // the same
)

func isNotAuthenticated(err error) bool { return errors.Is(err, server.ErrNotAuthenticated) }

// failedError is an error of a command with an HTTP status.
type failedError struct {
	status int
	why    string
}

func (e *failedError) Error() string { return e.why }

func asFailed(err error) (failed *failedError, ok bool) {
	ok = errors.As(err, &failed)
	return failed, ok
}
