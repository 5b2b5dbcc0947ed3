package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// A mutant is a planted bug.
type mutant struct {
	name   string // of the file, without its suffix
	path   string
	bug    string
	check  string // the command that must fail
	within time.Duration
}

// load returns the mutants in a directory, in order of their names.
func load(dir string) (mutants []mutant) {
	for _, path := range must.Get(filepath.Glob(filepath.Join(dir, "*.patch"))) {
		must.Doing(path, func() {
			m := parse(string(must.Get(os.ReadFile(path))))
			m.path, m.name = path, strings.TrimSuffix(filepath.Base(path), ".patch")
			mutants = append(mutants, m)
		})
	}
	return mutants
}

// parse reads the header of a patch. A line without a key continues the previous line.
func parse(text string) (m mutant) {
	head, _, ok := strings.Cut(text, "\ndiff --git ")
	if !ok {
		must.Failf(`no line begins with "diff --git"`)
	}
	fields, key := map[string]string{}, ""
	for line := range strings.Lines(head) {
		line = strings.TrimSpace(line)
		k, value, ok := strings.Cut(line, ": ")
		if ok && (k == "bug" || k == "check" || k == "within") {
			key, line = k, value
		}
		fields[key] = strings.TrimSpace(fields[key] + " " + line)
	}
	m.bug, m.check = fields["bug"], fields["check"]
	if m.bug == "" || m.check == "" {
		must.Failf(`the header needs lines that begin with "bug: " and "check: "`)
	}
	m.within = must.Get(time.ParseDuration(fields["within"]))
	return m
}

// subset returns the mutants at positions i, i+n, i+2n ... for a part "i/n", where i counts modulo
// n. Successive values of i cover all mutants.
func subset(all []mutant, part string) (some []mutant) {
	if part == "" {
		return all
	}
	var i, n int
	if _, err := fmt.Sscanf(part, "%d/%d", &i, &n); err != nil || i < 0 || n < 1 {
		must.Failf("-subset %s: want i/n, such as 3/10", part)
	}
	for at := i % n; at < len(all); at += n {
		some = append(some, all[at])
	}
	return some
}
