package backup

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
)

// command holds what the three commands have in common: their name, usage text and output.
type command struct {
	env   cli.Env
	name  string
	usage string
}

// parse parses flags and returns the other arguments. If done, the command must exit with status.
func (c *command) parse(flags *flag.FlagSet, args []string) (words []string, status int, done bool) {
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	for {
		err := flags.Parse(args)
		if errors.Is(err, flag.ErrHelp) {
			c.say(c.env.Out, c.usage)
			return nil, cli.OK, true
		}
		if err != nil {
			return nil, c.wrong(err.Error()), true
		}
		if args = flags.Args(); len(args) == 0 {
			return words, cli.OK, false
		}
		words, args = append(words, args[0]), args[1:]
	}
}

// wrong reports an error of the command line, and returns the exit status.
func (c *command) wrong(why string) int {
	c.say(c.env.Err, "gozkd "+c.name+": "+why+"\n\n"+c.usage)
	return cli.Usage
}

// failed reports an error of the command, and returns the exit status.
func (c *command) failed(err error) int {
	c.say(c.env.Err, "gozkd "+c.name+": "+strings.ReplaceAll(err.Error(), "\n", "\n  ")+"\n")
	return cli.Failed
}

// say writes text. An error is ignored: there is nowhere to report it.
func (c *command) say(w io.Writer, text string) { _, _ = io.WriteString(w, text) }

// line writes a line of a table: a label and its value.
func (c *command) line(label, format string, args ...any) {
	c.say(c.env.Out, fmt.Sprintf("%-11s %s\n", label, fmt.Sprintf(format, args...)))
}

// inBytes formats a number of bytes.
func inBytes(n int64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
