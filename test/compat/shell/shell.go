// Package shell runs zkCli.sh and cli_mt through work that a person would do: lines go in, and the
// output is compared with patterns.
package shell

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/cases"
)

// step is a line to send, and a regular expression for the output that follows; ^ and $ match at
// lines, and . matches a newline. ROOT in both stands for the case's own znode.
type step struct{ send, want string }

// work is a case of a shell. Each begins with a znode of its own that holds the data "data".
type work struct {
	name  string
	steps []step
}

// script is the work of a kind of shell.
type script struct {
	name     string // no shell creates znodes under another's name
	ready    string // matches once the shell has a session
	begin    []step // creates the znode of a case
	work     []work
	leave    []step // creates an ephemeral znode at ROOT/e in a session that then quits
	leftover []step // a later session's look at its remains
}

// readScript reads the work of a shell, in sections of steps: begin, case NAME, leave, leftover,
// and newer NAME, a case for the newer ZooKeeper alone. A step is "> LINE", and the pattern for the
// output in the next line, if any.
//
//	define NAME TEXT    NAME stands for TEXT in the patterns that follow
//	ready PATTERN
func readScript(name, text string, newer bool) (script, error) {
	s := script{name: name}
	var steps *[]step
	var defined []string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		word, rest, _ := strings.Cut(line, " ")
		pattern := strings.NewReplacer(defined...).Replace
		switch {
		case line == "" || line[0] == '#':
			steps = nil
		case word == ">" && steps != nil:
			*steps = append(*steps, step{send: rest})
		case steps != nil && len(*steps) > 0 && (*steps)[len(*steps)-1].want == "":
			(*steps)[len(*steps)-1].want = pattern(line)
		case word == "define":
			what, stands, _ := strings.Cut(rest, " ")
			defined = append(defined, what, stands)
		case word == "ready":
			s.ready = pattern(rest)
		case word == "begin":
			steps = &s.begin
		case word == "leave":
			steps = &s.leave
		case word == "leftover":
			steps = &s.leftover
		case word == "case" || word == "newer":
			w := work{name: rest}
			steps = &w.steps
			if word == "case" || newer {
				s.work = append(s.work, w)
				steps = &s.work[len(s.work)-1].steps
			}
		default:
			return s, fmt.Errorf("shell: script of %s: unexpected %q", name, line)
		}
	}
	return s, nil
}

// run runs the shell that command starts through the script.
func (s script) run(ctx context.Context, command []string) (_ []cases.Result, log string, err error) {
	sh, err := s.open(ctx, command)
	if err != nil {
		return nil, "", err
	}
	var list []cases.Case
	for _, w := range s.work {
		list = append(list, cases.Case{Name: w.name, Run: func(ctx context.Context) { must.Do(s.steps(ctx, sh, w.name, w.steps)) }})
	}
	results := cases.Run(ctx, list)
	log, _ = sh.printed(0)
	if err := sh.quit(); err != nil {
		return results, log, err
	}
	const name = "ephemerals_go_with_their_shell"
	results = append(results, cases.Run(ctx, []cases.Case{{Name: name, Run: func(ctx context.Context) {
		first := must.Get(s.open(ctx, command))
		must.Do(errors.Join(s.steps(ctx, first, name, s.leave), first.quit()))
		second := must.Get(s.open(ctx, command))
		must.Do(errors.Join(do(ctx, second, s.root(name), s.leftover), second.quit()))
	}}})...)
	return results, log, nil
}

// open starts a shell and waits for its session.
func (s script) open(ctx context.Context, command []string) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, cases.Timeout)
	defer cancel()
	sh, err := startSession(command)
	if err != nil {
		return nil, err
	}
	if err := sh.do(ctx, "", s.ready); err != nil {
		return nil, errors.Join(fmt.Errorf("%s found no server: %w", command[0], err), sh.kill())
	}
	return sh, nil
}

func (s script) root(name string) string { return "/" + s.name + "-" + name }

func (s script) steps(ctx context.Context, sh *session, name string, steps []step) error {
	return do(ctx, sh, s.root(name), slices.Concat(s.begin, steps))
}

func do(ctx context.Context, sh *session, root string, steps []step) error {
	for _, st := range steps {
		if err := sh.do(ctx, strings.ReplaceAll(st.send, "ROOT", root), strings.ReplaceAll(st.want, "ROOT", root)); err != nil {
			return err
		}
	}
	return nil
}
