package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
)

// owners are the commands whose messages a package or a file has. Each of them must have each flag
// that the messages name. Files without a row here are of the commands of their directory.
var owners = map[string]string{
	"cmd/gozkd":                                    "serve",
	"cmd/gozkd/commands_admin.go":                  "admin",
	"cmd/gozkd/init.go":                            "init",
	"cmd/gozkd/standby.go":                         "standby",
	"cmd/gozkd/why.go":                             "why",
	"cmd/gozkd/internal/adminclient":               "admin backup export",
	"cmd/gozkd/internal/archive":                   "verify restore inspect history",
	"cmd/gozkd/internal/backup":                    "backup restore export",
	"cmd/gozkd/internal/backup/archive.go":         "restore",
	"cmd/gozkd/internal/backup/backup.go":          "backup",
	"cmd/gozkd/internal/backup/foreign.go":         "export",
	"cmd/gozkd/internal/backup/inspect.go":         "inspect",
	"cmd/gozkd/internal/backup/promote.go":         "standby",
	"cmd/gozkd/internal/backup/restore.go":         "restore",
	"cmd/gozkd/internal/backup/subtree.go":         "restore",
	"cmd/gozkd/internal/backup/verify.go":          "verify",
	"cmd/gozkd/internal/clientflags":               "cli status ruok top",
	"cmd/gozkd/internal/config":                    "serve check-config",
	"cmd/gozkd/internal/inspect":                   "inspect history",
	"cmd/gozkd/internal/inspect/main.go":           "inspect",
	"cmd/gozkd/internal/mirror":                    "mirror",
	"cmd/gozkd/internal/moving/export.go":          "export",
	"cmd/gozkd/internal/moving/import.go":          "import",
	"cmd/gozkd/internal/moving/target.go":          "import migrate",
	"cmd/gozkd/internal/moving/migrate.go":         "migrate",
	"cmd/gozkd/internal/moving/migrate_control.go": "migrate",
	"cmd/gozkd/internal/moving/migrate_finish.go":  "migrate",
	"cmd/gozkd/internal/shell/main.go":             "cli",
	"cmd/gozkd/internal/status":                    "status ruok",
	"cmd/gozkd/internal/status/status.go":          "status ruok",
	"cmd/gozkd/internal/top":                       "top",
	"cmd/gozkd/internal/zkdata":                    "import",
}

// former are names that scripts may still use, and that no message or page may name.
var former = map[string][]string{
	"admin": {"server"}, "export": {"json"}, "history": {"from", "to", "ensemble"},
	"import": {"json", "only", "log-dir"}, "init": {"until"}, "inspect": {"path", "from", "to", "ensemble"},
	"migrate": {"log-dir"}, "restore": {"from-log-dir"}, "verify": {"ensemble", "json"},
}

// variants are the words before the flags of commands that have several sets of them.
var variants = map[string][][]string{"migrate": {nil, {"finish"}}, "restore": {nil, {"--subtree=/a"}}, "standby": {nil, {"promote", "DIR"}}}

// hasFlag reports whether a command has a flag, by a command line that is wrong otherwise.
func hasFlag(command, name string) bool {
	if slices.Contains(former[command], name) {
		return false
	}
	before := variants[command]
	if before == nil {
		before = [][]string{nil}
	}
	return slices.ContainsFunc(before, func(words []string) bool {
		var errs strings.Builder
		env := cli.Env{In: strings.NewReader(""), Out: new(strings.Builder), Err: &errs, Getenv: func(string) string { return "" }}
		args := append(append([]string{command}, words...), "--"+name+"=x", "--no-such-flag")
		run("gozkd", args, env)
		return !strings.Contains(errs.String(), "not defined: -"+name+"\n")
	})
}

var (
	aCommand = regexp.MustCompile("(?:^|[^/a-z.-])gozkd(?: ([a-z][a-z-]*))? ")
	aFlag    = regexp.MustCompile("(?:^|[\\s\\[(,|`'\"])--?([a-zA-Z][a-zA-Z0-9-]*)")
)

// commandNames are all commands, with those that main handles itself.
func commandNames() []string {
	names := slices.Collect(maps.Keys(commands))
	return append(names, "serve", "check-config", "init")
}

// eachFlag calls f with each flag in a text, and the command that the text before it names, or "".
func eachFlag(text string, f func(command, flag string)) {
	for line := range strings.Lines(text) {
		for _, m := range aFlag.FindAllStringSubmatchIndex(line, -1) {
			before, name, command := line[:m[0]+1], line[m[2]:m[3]], ""
			if name[0] == 'D' || len(name) == 1 && name != "o" || name == "base64" {
				continue // a property, or a flag of another program
			}
			if c := aCommand.FindAllStringSubmatchIndex(strings.ReplaceAll(before, "-u gozkd", "-u _____"), -1); c != nil {
				last := c[len(c)-1]
				between := before[last[1]:]
				if last[2] >= 0 {
					command = before[last[2]:last[3]]
				}
				if strings.ContainsAny(between, "`;>|&") || strings.Contains(before, "helm ") { // it is over, or no command
					command = ""
				} else if !slices.Contains(commandNames(), command) {
					command = "serve"
				}
			}
			f(command, name)
		}
	}
}

// Every flag that a usage text names exists in the command.
func TestFlags_OfUsageTexts(t *testing.T) {
	for _, name := range commandNames() {
		if name == "serve" || name == "check-config" {
			name = "--help" // of serve
		}
		var out strings.Builder
		env := cli.Env{In: strings.NewReader(""), Out: &out, Err: &out, Getenv: func(string) string { return "" }}
		args := [][]string{{name, "--help"}}
		if name == "restore" {
			args = append(args, []string{name, "--subtree", "/", "--help"})
		}
		for _, words := range args {
			if status := run("gozkd", words, env); status != cli.OK {
				t.Fatalf("%v: status %d\n%s", words, status, &out)
			}
		}
		n := 0
		eachFlag(out.String(), func(command, flag string) {
			if command == "" {
				command = strings.Replace(name, "--help", "serve", 1)
			}
			if n++; flag != "help" && flag != "version" && command != "cli" && !hasFlag(command, flag) {
				t.Errorf("%s --help: gozkd %s has no flag --%s", name, command, flag)
			}
		})
		if n == 0 {
			t.Errorf("%s --help names no flags:\n%s", name, &out)
		}
	}
}

// Every flag that a message names exists in the commands that print it.
func TestFlags_OfMessages(t *testing.T) {
	n := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		path = "cmd/gozkd/" + filepath.ToSlash(path)
		of, ok := owners[path]
		if !ok {
			of = owners[filepath.ToSlash(filepath.Dir(path))]
		}
		ast.Inspect(file, func(node ast.Node) bool {
			lit, ok := node.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING || strings.Contains(lit.Value, "usage: ") || !strings.Contains(lit.Value, " ") {
				return true // a usage text, which has a test of its own, or a part of a name
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			eachFlag(text, func(command, flag string) {
				commands := strings.Fields(of)
				if command != "" {
					commands = []string{command}
				}
				for _, c := range commands {
					if n++; c != "cli" && flag != "help" && !hasFlag(c, flag) {
						t.Errorf("%s: %q: gozkd %s has no flag --%s", path, text, c, flag)
					}
				}
			})
			return true
		})
		return nil
	})
	if err != nil || n < 100 {
		t.Errorf("%d flags, %v", n, err)
	}
}

// Every flag that a page or a file for deployment names exists in the command that it names.
func TestFlags_OfPages(t *testing.T) {
	n := 0
	root := filepath.Join("..", "..")
	for _, top := range []string{"docs/guide", "docs/reference", "docs/internals", "README.md", "deploy", "examples"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			eachFlag(string(text), func(command, flag string) {
				if command == "" || command == "cli" || flag == "help" || flag == "version" {
					return
				}
				if n++; !hasFlag(command, flag) {
					t.Errorf("%s: gozkd %s has no flag --%s", path, command, flag)
				}
			})
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if n < 50 {
		t.Errorf("%d flags", n)
	}
}

// Former names of flags still work.
func TestFlags_FormerNames(t *testing.T) {
	for command, names := range former {
		for _, name := range names {
			var errs strings.Builder
			env := cli.Env{In: strings.NewReader(""), Out: new(strings.Builder), Err: &errs, Getenv: func(string) string { return "" }}
			run("gozkd", []string{command, "--" + name + "=x", "--no-such-flag"}, env)
			if strings.Contains(errs.String(), "not defined: -"+name+"\n") {
				t.Errorf("gozkd %s --%s: %s", command, name, &errs)
			}
		}
	}
}
