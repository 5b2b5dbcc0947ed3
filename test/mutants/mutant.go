package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
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
func load(dir string) ([]mutant, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	var mutants []mutant
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		m, err := parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		m.path, m.name = path, strings.TrimSuffix(filepath.Base(path), ".patch")
		mutants = append(mutants, m)
	}
	return mutants, nil
}

// parse reads the header of a patch. A line without a key continues the previous line.
func parse(text string) (m mutant, err error) {
	head, _, ok := strings.Cut(text, "\ndiff --git ")
	if !ok {
		return m, fmt.Errorf(`no line begins with "diff --git"`)
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
		return m, fmt.Errorf(`the header needs lines that begin with "bug: " and "check: "`)
	}
	m.within, err = time.ParseDuration(fields["within"])
	return m, err
}

func choose(all []mutant, match *regexp.Regexp) (chosen []mutant) {
	for _, m := range all {
		if match.MatchString(m.name) {
			chosen = append(chosen, m)
		}
	}
	return chosen
}

// subset returns the mutants at positions i, i+n, i+2n ... for a part "i/n", where i counts modulo
// n. Successive values of i cover all mutants.
func subset(all []mutant, part string) ([]mutant, error) {
	if part == "" {
		return all, nil
	}
	var i, n int
	if _, err := fmt.Sscanf(part, "%d/%d", &i, &n); err != nil || i < 0 || n < 1 {
		return nil, fmt.Errorf("-subset %s: want i/n, such as 3/10", part)
	}
	var some []mutant
	for at := i % n; at < len(all); at += n {
		some = append(some, all[at])
	}
	return some, nil
}
