package backup

import (
	"fmt"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
)

// command is a running subcommand of this package.
type command struct{ cli.Command }

// line writes a line of a table: a label and its value.
func (c *command) line(label, format string, args ...any) {
	cli.Print(c.Env.Out, fmt.Sprintf("%-11s %s\n", label, fmt.Sprintf(format, args...)))
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
