package shell

import "io"

// result is what a command found out. Text writes what ZooKeeper's shell prints of it to the outputs that it prints it
// to. Marshalled by encoding/json it is the line of --output json: exported fields with tags, or a MarshalJSON.
type result interface {
	text(out, err io.Writer)
}

// nothing is the result of commands that print nothing when all is well.
type nothing struct{}

func (nothing) text(_, _ io.Writer) {}
