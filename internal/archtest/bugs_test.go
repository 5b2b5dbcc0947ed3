package archtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
)

// bug is a record of docs/quality/bugs.txt.
type bug struct {
	section, symptom, cause, commit, title string
	commands                               []string
}

// parseBugs reads the source of docs/quality/bugs.md.
func parseBugs(text string) (bugs []bug, err error) {
	section := ""
	for i, line := range strings.Split(text, "\n") {
		more, isMore := strings.CutPrefix(line, "\t")
		word, rest, _ := strings.Cut(more, " ")
		var b *bug
		if len(bugs) > 0 {
			b = &bugs[len(bugs)-1]
		}
		switch heading, isHeading := strings.CutPrefix(line, "## "); {
		case isHeading:
			section = heading
		case line == "" || line[0] == '#':
		case !isMore && slices.ContainsFunc(bugs, func(b bug) bool { return b.symptom == line }):
			return nil, fmt.Errorf("line %d: %s stands there twice", i+1, line)
		case !isMore:
			bugs = append(bugs, bug{section: section, symptom: line})
		case b == nil:
			return nil, fmt.Errorf("line %d: no symptom above it", i+1)
		case more == "":
			return nil, fmt.Errorf("line %d: an empty command", i+1)
		case word == "cause":
			b.cause = rest
		case word == "commit":
			b.commit, b.title, _ = strings.Cut(rest, " ")
		default:
			b.commands = append(b.commands, more)
		}
	}
	for _, b := range bugs {
		if b.commit == "" || b.title == "" {
			return nil, fmt.Errorf("%s: name the commit of the fix and its title", b.symptom)
		}
	}
	return bugs, nil
}

// bugsPage returns docs/quality/bugs.md.
func bugsPage(bugs []bug) string {
	var b strings.Builder
	b.WriteString("# Bugs that tests found\n\n" +
		"Generated from [bugs.txt](bugs.txt). Each command fails without the fix. Where no cause is written\n" +
		"down, the title of the commit says what was changed.\n")
	section := ""
	for _, x := range bugs {
		if x.section != section {
			section = x.section
			fmt.Fprintf(&b, "\n## %s\n\n| symptom | cause, or the fix | commit | command |\n|---|---|---|---|\n", section)
		}
		var commands []string
		for _, c := range x.commands {
			commands = append(commands, "`"+strings.ReplaceAll(c, "|", `\|`)+"`")
		}
		if commands == nil {
			commands = []string{"none"}
		}
		cause := x.cause
		if cause == "" {
			cause = x.title
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", x.symptom, cause, x.commit, strings.Join(commands, "<br>"))
	}
	return b.String()
}

var runFlag = regexp.MustCompile(`-run ('[^']*'|\S+)`)

// checkCommand returns an error unless the target, program or tests that a command runs exist.
// tests holds the names of the tests of each package.
func checkCommand(command, makefile string, tests map[string][]string) error {
	words := strings.Fields(command)
	switch {
	case words[0] == "make" && len(words) > 1:
		if !strings.Contains(makefile, "\n"+words[1]+":") {
			return fmt.Errorf("the Makefile has no target %s", words[1])
		}
		return nil
	case strings.HasPrefix(command, "go run ./"):
		_, err := os.Stat(filepath.Join(root, words[2]))
		return err
	case !strings.HasPrefix(command, "go test "):
		return errors.New("want go test, go run or make")
	}
	var names []string
	for _, word := range words {
		if dir, is := strings.CutPrefix(word, "./"); is {
			before := len(names)
			for pkg, list := range tests {
				if covers(dir, pkg) {
					names = append(names, list...)
				}
			}
			if len(names) == before {
				return fmt.Errorf("no tests in %s", word)
			}
		}
	}
	m := runFlag.FindStringSubmatch(command)
	if m == nil {
		if len(names) == 0 {
			return errors.New("name the packages")
		}
		return nil
	}
	return matchesAll(strings.Trim(m[1], "'"), names)
}

// matchesAll returns an error unless each alternative of a pattern for -run matches a name.
func matchesAll(pattern string, names []string) error {
	top, _, _ := strings.Cut(pattern, "/") // the rest selects subtests
	tree, err := syntax.Parse(top, syntax.Perl)
	if err != nil {
		return err
	}
	parts := []*syntax.Regexp{tree}
	if tree.Op == syntax.OpAlternate {
		parts = tree.Sub
	}
	for _, part := range parts {
		re, err := regexp.Compile(part.String())
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(names, re.MatchString) {
			return fmt.Errorf("no test matches %s", part)
		}
	}
	return nil
}

var testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example|Benchmark)\w*)\(`)

// testNames returns the names of the tests of each package.
func testNames(srcs []source) map[string][]string {
	names := make(map[string][]string)
	for _, s := range srcs {
		if s.test {
			for _, m := range testFunc.FindAllStringSubmatch(s.text, -1) {
				names[s.pkg] = append(names[s.pkg], m[1])
			}
		}
	}
	return names
}

// TestBugs checks that the commands of docs/quality/bugs.txt can run, and that docs/quality/bugs.md
// was made from that file.
func TestBugs(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	bugs, err := parseBugs(read("docs/quality/bugs.txt"))
	if err != nil || len(bugs) == 0 {
		t.Fatalf("docs/quality/bugs.txt: %v", err)
	}
	makefile, tests := read("Makefile"), testNames(load(t))
	for _, b := range bugs {
		for _, c := range b.commands {
			if err := checkCommand(c, makefile, tests); err != nil {
				t.Errorf("docs/quality/bugs.txt: %s: %s: %v", b.symptom, c, err)
			}
		}
	}
	page, want := read("docs/quality/bugs.md"), bugsPage(bugs)
	switch {
	case page == want:
	case *update:
		if err := os.WriteFile(filepath.Join(root, "docs", "quality", "bugs.md"), []byte(want), 0o644); err != nil {
			t.Error(err)
		}
	default:
		t.Errorf("docs/quality/bugs.md is not made from bugs.txt, from here on: %s\nwrite into bugs.txt and run: go test ./internal/archtest -run Bugs -update", difference(page, want))
	}
}

func TestBugs_Finds(t *testing.T) {
	tests := map[string][]string{"a": {"TestOne", "FuzzTwo"}, "a/b": {"TestThree"}}
	for command, want := range map[string]string{
		"go test ./a -run One":                    "",
		"go test ./a ./a/b -run 'One|Three/x'":    "",
		"go test ./a/... -run '(One|Nothing)$'":   "",
		"go test ./a -run Three":                  "no test matches",
		"go test ./a/... -run 'One|Four'":         "no test matches Four",
		"go test ./c -run One":                    "no tests in ./c",
		"go test ./a ./c":                         "no tests in ./c",
		"go test":                                 "want go test",
		"make sim SEEDS=1":                        "",
		"make love":                               "no target love",
		"go run ./internal/archtest/testdata -x":  "",
		"go run ./internal/archtest/nothing -x":   "no such file",
		"sh -c 'exit 0'":                          "want go test",
		"go test ./a -run 'TestOne$' -count 50":   "",
		"go test -race ./a/b -run Three -count=2": "",
	} {
		err := checkCommand(command, "x:\nsim: ## y\n", tests)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", command, err, want)
		}
	}
	for text, want := range map[string]string{
		"## s\n\nx\n\tmake sim":                      "name the commit",
		"\tmake sim":                                 "no symptom",
		"x\n\tcommit abc p: y\n\tmake sim\n\t":       "an empty command",
		"x\n\tcommit abc p: y\nx\n\tcommit abc p: y": "twice",
		"x\n\tcommit abc p: y\nz\n\tcommit abc p: y\nx\n\tcommit abc p: y": "twice",
	} {
		if _, err := parseBugs(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	bugs, err := parseBugs("## s\n\nx\n\tcause c\n\tcommit abc p: y\n\tgo test ./a -run 'A|B'\n\nz\n\tcommit abd p: w\n")
	if err != nil {
		t.Fatal(err)
	}
	page := bugsPage(bugs)
	for _, row := range []string{"| x | c | abc | `go test ./a -run 'A\\|B'` |", "| z | p: w | abd | none |"} {
		if !strings.Contains(page, row) {
			t.Errorf("the page has no row %s:\n%s", row, page)
		}
	}
}
