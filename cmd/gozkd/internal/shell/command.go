package shell

import (
	"context"
	"slices"
	"strings"
)

// command is one command of the shell.
type command struct {
	name string
	// args follows the name in the usage.
	args  string
	flags []flag
	// oneOf holds when at most one of the flags may be given, and needsFlag when one must.
	oneOf, needsFlag bool
	// minArgs is how many arguments there must be behind the name.
	minArgs int
	// explains holds when the usage lists the flags, each with what it does.
	explains bool
	// about says in a few words what the command does, for help.
	about string
	// raw commands take the words behind their name as they are: what begins with a dash is no flag.
	raw bool
	// lines holds when --output json has a value for each thing that the command finds, and not one for the command.
	lines bool
	// offline commands need no session.
	offline bool
	// run executes the command. An error that is a usageError makes the shell print the usage behind it.
	run func(ctx context.Context, c *call) error
}

// flag is a flag of a command, "-name" or "-name value".
type flag struct {
	name  string
	value bool
	about string
}

// usage returns the lines that say how the command is called, without the last newline: "get [-s] path", and what the
// flags do below it if the command explains them.
func (c *command) usage() string {
	line := c.name + " " + c.args
	if !c.explains {
		return line
	}
	return line + "\n" + c.flagHelp()
}

// flagHelp returns a line for each flag, in the order and the columns of the commons-cli library.
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

// call is one execution of a command.
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

// value returns the value of a flag, the first if it was given more than once, or "".
func (c *call) value(name string) string {
	if i := slices.IndexFunc(c.given, func(g givenFlag) bool { return g.name == name }); i >= 0 {
		return c.given[i].value
	}
	return ""
}
