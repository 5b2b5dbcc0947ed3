package must

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
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

// Program runs the work of a program with a set of flags and its arguments, and ends the process
// with the status that Main returns. ctx ends with an interrupt.
func Program(name string, work func(ctx context.Context, flags *flag.FlagSet, args []string)) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := Main(name, flag.ErrHelp, func() { work(ctx, flag.NewFlagSet(name, flag.ContinueOnError), os.Args[1:]) })
	stop()
	os.Exit(status)
}

// Parsed ends the program if err, of parsing its flags, is not nil.
func Parsed(err error) {
	if err != nil {
		end(errors.Join(errUsage, err))
	}
}
