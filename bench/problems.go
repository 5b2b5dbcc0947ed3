//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// problem is something that was to be measured and could not be.
type problem struct {
	Row    string `json:"row"` // as in the readings; of a throughput table its name, a comma, and its shape; empty: all of the command
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

// fail notes that a row could not be measured on a server, so that the others still are. It says so at once on standard error, and end
// says it below the tables. It returns an error only if ctx has ended: then nothing more can be measured.
func (o *output) fail(ctx context.Context, row, server string, err error) error {
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	why, _, _ := strings.Cut(err.Error(), "\n") // the log of a server may follow
	p := problem{row, server, why, err}
	progress("FAILED: %s", strings.TrimSuffix(p.String(), why)+err.Error())
	o.problems = append(o.problems, p)
	return nil
}

// end is called after each command, with its error. It says below the tables what could not be measured, and returns an error if there is
// any of that.
func (o *output) end(command string, err error) error {
	if err != nil {
		why, _, _ := strings.Cut(err.Error(), "\n")
		o.problems = append(o.problems, problem{Why: why, err: err})
		if !o.wrote[command] { // so that the folder tells what failed from what was not tried
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
