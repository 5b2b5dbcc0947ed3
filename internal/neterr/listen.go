package neterr

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// ListenError returns the error of a port that cannot be opened, with a remedy. settings say
// where another port or address is chosen. The result is nil if err is nil.
func ListenError(port string, err error, settings string) error {
	switch {
	case err == nil:
		return nil
	case Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s: %w; stop what listens there, or choose another port: %s", port, err, settings)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: %w; choose a port above 1023, or give the program CAP_NET_BIND_SERVICE: %s", port, err, settings)
	}
	return fmt.Errorf("%s: %w; choose another address, 0.0.0.0 for all: %s", port, err, settings)
}
