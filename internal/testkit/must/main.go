package must

import (
	"errors"
	"fmt"
	"os"
)

// errUsage ends a program that was called wrongly, after package flag has printed the reason.
var errUsage = errors.New("wrong usage")

// Main runs the work of a program, prints the error that ends it, and returns the exit status: 1
// after an error, 2 for wrong usage, and 0 after help, the error of package flag when help is asked
// for.
func Main(name string, help error, work func()) int {
	switch err := Try(work); {
	case err == nil || errors.Is(err, help):
		return 0
	case errors.Is(err, errUsage):
		return 2
	default:
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
}

// Parsed ends the program if err, of parsing its flags, is not nil.
func Parsed(err error) {
	if err != nil {
		end(errors.Join(errUsage, err))
	}
}
