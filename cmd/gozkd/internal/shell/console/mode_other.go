//go:build !windows

package console

import (
	"os"

	"golang.org/x/term"
)

// Raw sets raw mode, in which keys are delivered immediately. restore undoes the change.
func Raw(in, _ *os.File) (restore func() error, err error) {
	was, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	return func() error { return term.Restore(int(in.Fd()), was) }, nil
}
