package config

import (
	"fmt"
	"strings"
)

// Origin says where a setting was made.
type Origin struct {
	// Source is the path of a file, the name of an environment variable, or a flag such as "--client-port".
	Source string
	// Line is the line in the file, from 1; 0 where there are no lines.
	Line int

	layer layer
}

// layer orders the sources: a higher one wins.
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

// Problem is one reason not to start.
type Problem struct {
	// From is where the setting was made; the zero Origin where something is missing.
	From Origin
	// Key is the key as it was written; empty where a line or a flag as a whole is at fault.
	Key string
	// What says what is wrong and what is allowed.
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

// Error is everything that keeps a configuration from being used.
type Error struct {
	// Problems has at least one element.
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

// Usage reports whether the command line is at fault, which a program answers with exit status 2.
func (e *Error) Usage() bool {
	for _, p := range e.Problems {
		if p.From.layer == fromFlags {
			return true
		}
	}
	return false
}
