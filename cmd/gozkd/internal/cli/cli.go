// Package cli holds the common parts of the subcommands of cmd/gozkd: environment, exit statuses
// and the reading of flags.
//
// A subcommand is a function of type Main. It returns when its work is done or ctx has ended, and
// does not close anything in env.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/internal/version"
)

// Env is the environment of a subcommand.
type Env struct {
	In       io.Reader
	Out, Err io.Writer
	// Getenv looks up an environment variable, as os.Getenv does.
	Getenv func(string) string
	// Environ lists the environment, as os.Environ does. If Environ is nil, variables that have a
	// key in their name have no effect, and unknown ones are not reported.
	Environ func() []string
	// Interrupts redirects Ctrl-C: until stop is called, interrupts arrive on the channel and no
	// longer end the subcommand's ctx. It may be nil.
	Interrupts func() (interrupts <-chan os.Signal, stop func())
	// BeforeServe is called before the configuration of a server is read, which may be a pipe, and
	// may start the program again. It may be nil.
	BeforeServe func()
	// Server describes the server that `gozkd serve` would run with args, which may contain flags
	// of fs, unless that is nil. Its error has Usage() bool: the command line is wrong.
	Server func(fs *flag.FlagSet, args []string) (Server, error)
}

// Names returns the names of the environment variables, sorted.
func (e Env) Names() []string {
	if e.Environ == nil {
		return nil
	}
	var names []string
	for _, line := range e.Environ() {
		name, _, _ := strings.Cut(line, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Server is where a server that `gozkd serve` would run keeps its data.
type Server struct {
	Help bool // the command line asks for the usage text
	One  bool // it is a command line for a single server with its data in files
	// ID is 0 if it is not configured, and Members is 0 for a standalone server.
	ID          uint64
	Members     int
	Dir, LogDir string
	TokenFile   string // of gozkd.admin.tokenFile
}

// Main is a subcommand. args are the arguments after its name. The result is the exit status.
type Main func(ctx context.Context, args []string, env Env) int

// Exit statuses.
const (
	OK     = 0
	Failed = 1 // the subcommand failed
	Usage  = 2 // the command line is wrong; the usage text is on Err
)

// Version returns a line with the version of gozkd, the Go release and the platform.
func Version() string { return "gozkd " + version.Get().Line() }

// ParseFlags parses args and returns the words that are not flags. Flags may stand before, between
// and after the words. The error is for Command.End: flag.ErrHelp, or a UsageError.
func ParseFlags(fs *flag.FlagSet, args []string) (words []string, err error) {
	fs.Init(fs.Name(), flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	for {
		switch err := fs.Parse(args); {
		case errors.Is(err, flag.ErrHelp):
			return nil, err
		case err != nil:
			return nil, UsageError{err}
		}
		if args = fs.Args(); len(args) == 0 {
			return words, nil
		}
		words, args = append(words, args[0]), args[1:]
	}
}

// Command reports the errors of a running subcommand.
type Command struct {
	Env   Env
	Name  string
	Usage string // the usage text, with a final newline
}

// Do parses args, and has check look at the words that are not flags. If the command line is right,
// run does the work. Do prints the error of any of them, and returns the exit status.
func (c Command) Do(fs *flag.FlagSet, args []string, check, run func(words []string) error) int {
	words, err := ParseFlags(fs, args)
	if err == nil {
		if err = check(words); err != nil {
			return c.Misused(err)
		}
		err = run(words)
	}
	return c.End(err)
}

// UsageError is an error of the command line.
type UsageError struct{ Err error }

// Error returns the text of the error.
func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e UsageError) Unwrap() error { return e.Err }

// End prints an error, if there is one, and returns the exit status. A UsageError is Misused. For
// flag.ErrHelp End prints the usage text: the user asked for it.
func (c Command) End(err error) int {
	switch {
	case err == nil:
		return OK
	case errors.Is(err, flag.ErrHelp):
		Print(c.Env.Out, c.Usage)
		return OK
	case errors.As(err, new(UsageError)):
		return c.Misused(err)
	}
	return c.Fail(err)
}

// Misused prints the error of the command line and the usage text. It returns Usage.
func (c Command) Misused(err error) int {
	Print(c.Env.Err, "gozkd "+c.Name+": "+printable.Error(err)+"\n\n"+c.Usage)
	return Usage
}

// Fail prints an error, with the lines after the first indented. It returns Failed.
func (c Command) Fail(err error) int {
	Print(c.Env.Err, "gozkd "+c.Name+": "+strings.ReplaceAll(printable.Error(err), "\n", "\n  ")+"\n")
	return Failed
}

// Line prints a line of a report: a label, and the text beside it.
func (c Command) Line(label, format string, args ...any) {
	Print(c.Env.Out, Labelled(label, format, args...))
}

// Labelled returns a line of a report: a label, and beside it a text of one or more lines.
func Labelled(label, format string, args ...any) string {
	text := strings.TrimRight(fmt.Sprintf(format, args...), "\n")
	return fmt.Sprintf("%-11s %s\n", label, strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", 12)))
}

// PrintJSON prints a value, which must have a JSON form, as a line.
func (c Command) PrintJSON(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	Print(c.Env.Out, string(b)+"\n")
}

// OutputFlag adds the flag --output, which selects the output format, to fs.
func OutputFlag(fs *flag.FlagSet, json *bool) {
	fs.Func("output", "", func(format string) error {
		if *json = format == "json"; !*json && format != "text" {
			return errors.New("must be text or json")
		}
		return nil
	})
}

// Alias gives flags of fs their former names, for scripts, as pairs of a former and a present one.
func Alias(fs *flag.FlagSet, names ...string) {
	for i := 0; i < len(names); i += 2 {
		fs.Var(fs.Lookup(names[i+1]).Value, names[i], "")
	}
}

// List splits at commas, trims white space as Java does, and drops empty elements.
func List(v string) (words []string) {
	for w := range strings.SplitSeq(v, ",") {
		if w = strings.TrimFunc(w, func(r rune) bool { return r <= ' ' }); w != "" {
			words = append(words, w)
		}
	}
	return words
}

// Print writes text and ignores an error: there is no other place to report it.
func Print(w io.Writer, text string) { _, _ = io.WriteString(w, text) }
