package shell

import (
	"context"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// command is a command of the shell.
type command struct {
	name string
	// args follows the name in the usage.
	args  string
	flags []flag
	// oneOf allows at most one of the flags; needsFlag requires one.
	oneOf, needsFlag bool
	// minArgs is the number of required arguments.
	minArgs int
	// explains makes the usage list the flags and their meaning.
	explains bool
	// about describes the command in help.
	about string
	// raw commands have no flags: all words are arguments.
	raw bool
	// lines is set if --output json prints a value per item found instead of a value per command.
	lines bool
	// offline commands need no session.
	offline bool
	// run executes the command. After a usageError the shell prints the usage.
	run func(ctx context.Context, c *call) error
}

// flag is a flag of a command, "-name" or "-name value".
type flag struct {
	name  string
	value bool
	about string
}

// usage returns the usage line, such as "get [-s] path". If the command explains its flags, their
// help follows. There is no final newline after the usage line.
func (c *command) usage() string {
	line := c.name + " " + c.args
	if !c.explains {
		return line
	}
	return line + "\n" + c.flagHelp()
}

// flagHelp returns a line per flag, in the order and layout of the commons-cli library.
func (c *command) flagHelp() string {
	sorted := slices.Clone(c.flags)
	slices.SortStableFunc(sorted, func(a, b flag) int {
		return strings.Compare(strings.ToLower(a.name), strings.ToLower(b.name))
	})
	left := make([]string, len(sorted))
	width := 0
	for i, f := range sorted {
		left[i] = " -" + f.name
		if f.value {
			left[i] += " <arg>"
		}
		width = max(width, len(left[i]))
	}
	var b strings.Builder
	for i, f := range sorted {
		b.WriteString(left[i] + strings.Repeat(" ", width-len(left[i])+3) + f.about + "\n")
	}
	return b.String()
}

// call is an execution of a command.
type call struct {
	*Shell
	command *command
	args    []string // without the name and the flags
	given   []givenFlag
}

// has reports whether the flag was given.
func (c *call) has(name string) bool {
	return slices.ContainsFunc(c.given, func(g givenFlag) bool { return g.name == name })
}

// value returns the value of a flag, the first value if the flag was repeated, or "".
func (c *call) value(name string) string {
	if i := slices.IndexFunc(c.given, func(g givenFlag) bool { return g.name == name }); i >= 0 {
		return c.given[i].value
	}
	return ""
}

// wantedStat returns st for output if -s was given, or nil.
func (c *call) wantedStat(st proto.Stat) *stat {
	if !c.has("s") {
		return nil
	}
	return c.stat(st)
}

// showStat shows the new Stat of a znode if -s was given.
func (c *call) showStat(path string, st proto.Stat) error {
	if !c.has("s") {
		return nil
	}
	return c.printStat(path, st)
}
