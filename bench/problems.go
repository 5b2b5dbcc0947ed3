//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// problem is a row that could not be measured.
type problem struct {
	Row    string `json:"row"` // as in the readings; of a throughput table its name, a comma, and its shape; empty: the whole command
	Server string `json:"server,omitempty"`
	Why    string `json:"why"`

	err error
}

func (p *problem) String() string {
	var words []string
	for _, w := range []string{p.Row, p.Server, p.Why} {
		if w != "" {
			words = append(words, w)
		}
	}
	return strings.Join(words, ": ")
}

// fail records that a row could not be measured on a server, prints the failure on standard error,
// and lets the other rows go on; end prints it below the tables. fail returns an error only if ctx
// has ended.
func (o *output) fail(ctx context.Context, row, server string, err error) error {
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	why, _, _ := strings.Cut(err.Error(), "\n") // a server's log may follow
	p := problem{row, server, why, err}
	progress("FAILED: %s", strings.TrimSuffix(p.String(), why)+err.Error())
	o.problems = append(o.problems, p)
	return nil
}

// attempt measures a row on a server, and reports whether nothing went wrong. It is as fail
// otherwise, and ends the command if ctx has ended.
func (o *output) attempt(ctx context.Context, row, server string, measure func()) bool {
	err := must.Try(measure)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		must.Do(o.fail(ctx, row, server, err))
	}
	return err == nil
}

// end is called after each command with its error. It prints the failures below the tables, and
// returns an error if there are any.
func (o *output) end(command string, err error) error {
	if err != nil {
		why, _, _ := strings.Cut(err.Error(), "\n")
		o.problems = append(o.problems, problem{Why: why, err: err})
		if !o.wrote[command] { // so that the directory distinguishes a failure from a command that was not run
			err = errors.Join(err, o.readings(command, nil))
		}
	}
	for _, p := range o.problems {
		o.printf("\n**Failed**: %s\n", &p)
		if p.Row != "" || p.Server != "" {
			err = errors.Join(err, fmt.Errorf("%s: %w", &problem{Row: p.Row, Server: p.Server}, p.err))
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	return o.failed
}
