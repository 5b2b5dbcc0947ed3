package console

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
	"golang.org/x/term"
)

// Raw sets raw mode, in which keys are delivered immediately. restore undoes the change.
func Raw(in, out *os.File) (restore func() error, err error) {
	was, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	undo := func() error { return term.Restore(int(in.Fd()), was) }
	// Consoles interpret escape sequences only after this.
	var mode uint32
	screen := windows.Handle(out.Fd())
	if err := windows.GetConsoleMode(screen, &mode); err != nil {
		return nil, errors.Join(err, undo())
	}
	if err := windows.SetConsoleMode(screen, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING|windows.DISABLE_NEWLINE_AUTO_RETURN); err != nil {
		return nil, errors.Join(err, undo())
	}
	return func() error { return errors.Join(windows.SetConsoleMode(screen, mode), undo()) }, nil
}
