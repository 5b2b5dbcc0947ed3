package checkpoint

import (
	"errors"
	"fmt"
	"syscall"
)

// ErrCorrupt is wrapped by the error of a checkpoint file that is damaged.
var ErrCorrupt = errors.New("corrupt checkpoint")

// ErrInUse is returned when a lock on a checkpoint file can't be acquired in time.
var ErrInUse = errors.New("another process is using the file; end that process, then try again")

// Pairs calls visit for each key of a state in ascending order, until visit returns an error, and
// returns that error. A nil value: the key is absent. Slices are valid during the call only.
type Pairs func(visit func(key, value []byte) error) error

// What to do about a damaged file.
const (
	ofServer = "if other members hold the data, move the whole data directory away and start this server " +
		"with an empty one; otherwise make a new one with gozkd restore"
	ofCopy = "name another backup, or the data directory of a stopped server"
)

// corrupt returns an error that wraps ErrCorrupt and cause, and says what to do about the file.
func corrupt(path, remedy string, cause error) error {
	return fmt.Errorf("%w: open %s: %w; the file was not changed; %s", ErrCorrupt, path, cause, remedy)
}

// fileError names the file in an error of reading or merging it. An error that comes neither from
// the operating system nor from a lock was caused by the contents of the file.
func fileError(operation, path, remedy string, err error) error {
	var errno syscall.Errno
	switch {
	case err == nil:
		return nil
	case errors.As(err, &errno), errors.Is(err, ErrInUse):
		return fmt.Errorf("%s checkpoint %s: %w", operation, path, err)
	}
	return corrupt(path, remedy, err)
}
