package neterr

import (
	"fmt"
	"syscall"
)

// ListenError returns the error of a port that cannot be opened, with what to do. settings say
// where another port or address is chosen. The result is nil if err is nil.
func ListenError(port string, err error, settings string) error {
	switch {
	case err == nil:
		return nil
	case Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s: %w; stop what listens there, or choose another port: %s", port, err, settings)
	}
	return fmt.Errorf("%s: %w; choose another address: %s", port, err, settings)
}
