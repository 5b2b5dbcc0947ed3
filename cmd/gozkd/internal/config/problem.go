package config

import (
	"fmt"
	"strings"
)

// Origin is the place of a setting.
type Origin struct {
	// Source is the path of a file, the name of an environment variable, or a flag such as
	// "--client-port".
	Source string
	// Line is the line in the file, from 1; 0 if there are no lines.
	Line int

	layer layer
}

// layer orders the origins: a higher layer overrides a lower one.
type layer int

const (
	fromNowhere layer = iota
	fromImage
	fromEnvironment
	fromFile
	fromFlags
)

func (o Origin) String() string {
	if o.Line == 0 {
		return o.Source
	}
	return fmt.Sprintf("%s:%d", o.Source, o.Line)
}

// Problem is a reason not to start.
type Problem struct {
	// From is the place of the setting; zero if a setting is missing.
	From Origin
	// Key is the key as written; empty if the problem concerns a line or flag as a whole.
	Key string
	// What describes the problem and the valid values.
	What string
}

func (p Problem) String() string {
	var parts []string
	if s := p.From.String(); s != "" {
		parts = append(parts, s)
	}
	if p.Key != "" {
		parts = append(parts, p.Key)
	}
	return strings.Join(append(parts, p.What), ": ")
}

// Error reports all problems of a configuration.
type Error struct {
	// Problems is not empty.
	Problems []Problem
}

// Error returns the problems, one per line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Usage reports whether the command line is wrong; the exit status is 2 then.
func (e *Error) Usage() bool {
	for _, p := range e.Problems {
		if p.From.layer == fromFlags {
			return true
		}
	}
	return false
}
