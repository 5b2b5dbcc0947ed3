package backup

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
)

// command is the surroundings of one of the commands.
type command struct {
	env   cli.Env
	name  string
	usage string
}

// parse reads flags and returns the words between them. With done the command is over, with that status.
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

// wrong is the end of a command whose command line is wrong.
func (c *command) wrong(why string) int {
	c.say(c.env.Err, "gozkd "+c.name+": "+why+"\n\n"+c.usage)
	return cli.Usage
}

// failed is the end of a command that could not do what it was asked for.
func (c *command) failed(err error) int {
	c.say(c.env.Err, "gozkd "+c.name+": "+strings.ReplaceAll(err.Error(), "\n", "\n  ")+"\n")
	return cli.Failed
}

// say writes text. When that fails there is nowhere left to say so.
func (c *command) say(w io.Writer, text string) { _, _ = io.WriteString(w, text) }

// line writes a line of a table: what it is, and what is said of it.
func (c *command) line(what, format string, args ...any) {
	c.say(c.env.Out, fmt.Sprintf("%-11s %s\n", what, fmt.Sprintf(format, args...)))
}

// inBytes prints a number of bytes.
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
