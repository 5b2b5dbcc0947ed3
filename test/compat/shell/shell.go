// Package shell runs zkCli.sh and cli_mt through work that a person would do: lines go in, and the
// output is compared with patterns.
package shell

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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
func (s script) run(ctx context.Context, command []string) (results []cases.Result, log string) {
	dir := must.Get(os.MkdirTemp("", "gozkd-shell-"))
	defer must.Finally(func() error { return os.RemoveAll(dir) })
	s.session(ctx, command, filepath.Join(dir, "0"), func(sh *session) {
		var list []cases.Case
		for _, w := range s.work {
			list = append(list, cases.Case{Name: w.name, Run: func(ctx context.Context) { s.steps(ctx, sh, w.name, w.steps) }})
		}
		results = cases.Run(ctx, list)
		log = sh.Log()
	})
	const name = "ephemerals_go_with_their_shell"
	return append(results, cases.Run(ctx, []cases.Case{{Name: name, Run: func(ctx context.Context) {
		s.session(ctx, command, filepath.Join(dir, "1"), func(sh *session) { s.steps(ctx, sh, name, s.leave) })
		s.session(ctx, command, filepath.Join(dir, "2"), func(sh *session) { do(ctx, sh, s.root(name), s.leftover) })
	}}})...), log
}

// session lets work use a shell once it has a session, and lets the shell quit. Its output goes to
// dir, which is made.
func (s script) session(ctx context.Context, command []string, dir string, work func(sh *session)) {
	must.Do(os.Mkdir(dir, 0o755))
	sh := startSession(command, dir)
	defer must.Finally(sh.Kill)
	must.Doing(command[0]+" found no server", func() { sh.do(ctx, "", s.ready) })
	work(sh)
	sh.quit()
}

func (s script) root(name string) string { return "/" + s.name + "-" + name }

func (s script) steps(ctx context.Context, sh *session, name string, steps []step) {
	do(ctx, sh, s.root(name), slices.Concat(s.begin, steps))
}

func do(ctx context.Context, sh *session, root string, steps []step) {
	for _, st := range steps {
		sh.do(ctx, strings.ReplaceAll(st.send, "ROOT", root), strings.ReplaceAll(st.want, "ROOT", root))
	}
}
