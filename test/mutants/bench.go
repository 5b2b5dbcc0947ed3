package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
)

// A verdict is the result of a mutant.
type verdict string

const (
	found   verdict = "found"
	late    verdict = "late"    // found, but it took longer than within
	missed  verdict = "MISSED"  // the check passed
	stale   verdict = "STALE"   // the patch does not apply, or the result does not compile
	control verdict = "CONTROL" // the check fails without the bug
)

// An outcome is the result of a check.
type outcome struct {
	verdict verdict
	took    time.Duration // processor time
	output  string
}

// excerpt returns the lines of the output that name the failure, or its end.
func (o *outcome) excerpt() string {
	const most, width = 4, 200
	var all, some []string
	for line := range strings.Lines(o.output) {
		line = strings.TrimSuffix(line, "\n")
		line = line[:min(len(line), width)] + "\n"
		all = append(all, line)
		if len(some) < most && complaint.MatchString(line) {
			some = append(some, line)
		}
	}
	if len(some) == 0 {
		some = all[max(0, len(all)-20):]
	}
	return "         " + strings.Join(some, "         ")
}

var complaint = regexp.MustCompile(`^\s+\w+_test\.go:|^panic: |^fatal error: |: error: |^anomal`)

// bench tries mutants in copies of the tree.
type bench struct {
	root     string // of the tree
	dir      string // for the copies
	copies   int
	controls map[string]outcome // by check: the result without a bug
}

// try plants a bug and runs its check with a seed of rapid.
func (b *bench) try(ctx context.Context, m mutant, seed int) (o outcome) {
	tree := b.copyTree(ctx)
	defer func() { _ = os.RemoveAll(tree) }() // the whole directory is removed in the end
	clean, ok := b.controls[m.check]
	if !ok {
		clean = check(ctx, tree, m, seed)
		b.controls[m.check] = clean
		// The check may have left files, such as those of inputs that failed.
		must.Do(errors.Join(ctx.Err(), os.RemoveAll(tree)))
		tree = b.copyTree(ctx)
	}
	if clean.verdict != missed {
		return outcome{verdict: control, took: clean.took, output: clean.output}
	}
	if out, err := plant(ctx, tree, m); err != nil {
		o = outcome{verdict: stale, output: string(out)}
	} else {
		o = check(ctx, tree, m, seed)
	}
	must.Do(ctx.Err())
	return o
}

// plant applies the patch of m to a tree, and returns what git says.
func plant(ctx context.Context, tree string, m mutant) ([]byte, error) {
	apply := exec.CommandContext(ctx, "git", "apply", "--recount", "-C1", must.Get(filepath.Abs(m.path)))
	apply.Dir = tree
	// Otherwise git would take a repository around the copy for that of the patch.
	apply.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(tree))
	return apply.CombinedOutput()
}

// check runs the check of m in a tree.
func check(ctx context.Context, tree string, m mutant, seed int) outcome {
	const hangs = 4 // times within: a bound for a check that would never end, on a busy machine
	command := m.check
	if args, ok := strings.CutPrefix(command, "go test "); ok {
		command = fmt.Sprintf("go test -vet=off -count=1 -timeout=%v %s", hangs*m.within, args)
		if strings.Contains(args, "-rapid.") { // the same runs each time, and nothing that a later run would try first
			command += fmt.Sprintf(" -rapid.seed=%d -rapid.nofailfile -rapid.shrinktime=0s", seed)
		}
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", "exec "+command)
	cmd.Dir = tree
	// Without the paths of the copy in the results, all copies share the build cache.
	cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath -buildvcs=false")
	out, err := cmd.CombinedOutput()
	o := outcome{verdict: missed, output: string(out)}
	if s := cmd.ProcessState; s != nil {
		o.took = s.UserTime() + s.SystemTime()
	}
	switch {
	case err == nil:
	case strings.Contains(o.output, "[build failed]") || strings.Contains(o.output, "[setup failed]"):
		o.verdict = stale
	case o.took > m.within:
		o.verdict = late
	default:
		o.verdict = found
	}
	return o
}

// copyTree copies the files that git knows or would add, as they are now, and returns the copy.
func (b *bench) copyTree(ctx context.Context) string {
	names := install.Output(ctx, b.root, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	b.copies++
	tree := filepath.Join(b.dir, fmt.Sprint(b.copies))
	for name := range strings.SplitSeq(strings.TrimRight(names, "\x00"), "\x00") {
		copyFile(filepath.Join(tree, name), filepath.Join(b.root, name))
	}
	return tree
}

// copyFile copies a file with its permissions. A file that is deleted but not committed is left
// out.
func copyFile(to, from string) {
	info, err := os.Lstat(from)
	if errors.Is(err, os.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return
	}
	must.Do(errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o755)))
	must.Do(os.WriteFile(to, must.Get(os.ReadFile(from)), info.Mode().Perm()))
}
