// Package cli is what the commands of cmd/gozkd have in common: where they read and write, and how they end.
//
// A command is a function Main(ctx, args, env) of its package. It returns when it is done or ctx has ended, and owns
// nothing of env.
package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/gozkd/gozkd/internal/version"
)

// Env is what surrounds a command.
type Env struct {
	In       io.Reader
	Out, Err io.Writer
	// Getenv looks up an environment variable, as os.Getenv does.
	Getenv func(string) string
	// Environ lists the environment, as os.Environ does; nil: what is in it by names that nobody asks for is not known.
	Environ func() []string
	// Interrupts makes an interrupt, Ctrl-C, the command's affair until stop is called: it comes over the channel and does
	// not end the command's ctx any more. Nil: it can't.
	Interrupts func() (interrupts <-chan os.Signal, stop func())
}

// Main is a command. args are those behind its name; the result is the exit status.
type Main func(ctx context.Context, args []string, env Env) int

// Exit statuses.
const (
	OK     = 0
	Failed = 1 // it could not do what it was asked for
	Usage  = 2 // the command line is wrong; the usage is on Err
)

// Version returns the line that gozkd --version prints: the version, which a server also names in its four-letter words,
// the commit if the go command recorded it, the Go release, and the platform.
func Version() string {
	number := version.Number
	if revision := version.Revision(); revision != "" {
		number += " (" + revision + ")"
	}
	return fmt.Sprintf("gozkd %s, %s, %s/%s", number, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
