package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// strayGoroutines lists go statements without a comment that ends on the line above: it says who
// stops the goroutine and who waits for it.
func strayGoroutines(srcs []source) []string {
	var findings []string
	for _, s := range srcs {
		if s.test {
			continue
		}
		commented := make(map[int]bool) // lines on which a comment ends
		for _, group := range s.file.Comments {
			commented[s.line(group.End())] = true
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok && !commented[s.line(g.Pos())-1] {
				findings = append(findings, s.at(g.Pos())+": a go statement needs on the line above who stops it and who awaits it")
			}
			return true
		})
	}
	return findings
}

// selfEvident are methods whose contract is that of the interface they are there for.
var selfEvident = []string{"Error", "String", "GoString", "Unwrap", "Is", "As", "Len", "Less", "Swap"}

// undocumented lists exported names without a doc comment, and packages without one. A comment on a
// group of constants, variables or types speaks for its members.
func undocumented(srcs []source) []string {
	var findings []string
	documented := make(map[string]bool)
	for _, s := range srcs {
		if s.test || ast.IsGenerated(s.file) {
			continue
		}
		documented[s.pkg] = documented[s.pkg] || s.file.Doc != nil
		missing := func(id *ast.Ident) {
			findings = append(findings, fmt.Sprintf("%s: exported %s has no doc comment", s.at(id.Pos()), id.Name))
		}
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Doc == nil && d.Name.IsExported() && exportedReceiver(d) && !(d.Recv != nil && slices.Contains(selfEvident, d.Name.Name)) {
					missing(d.Name)
				}
			case *ast.GenDecl:
				if d.Doc != nil {
					continue
				}
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						if spec.Doc == nil && spec.Comment == nil && spec.Name.IsExported() {
							missing(spec.Name)
						}
					case *ast.ValueSpec:
						i := slices.IndexFunc(spec.Names, (*ast.Ident).IsExported)
						if spec.Doc == nil && spec.Comment == nil && i >= 0 {
							missing(spec.Names[i])
						}
					}
				}
			}
		}
	}
	for pkg, ok := range documented {
		if !ok {
			findings = append(findings, fmt.Sprintf("package %s has no package comment", pkg))
		}
	}
	slices.Sort(findings)
	return findings
}

// exportedReceiver reports whether d is a function, or a method of an exported type.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return true
	}
	typ := d.Recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.IndexListExpr:
			typ = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}

// processWide lists uses of what belongs to the process and so to its main package alone: several
// servers live in one process, and an embedder's process is not ours to end or to read settings
// from.
func processWide(srcs []source) []string {
	var findings []string
	for _, s := range srcs {
		switch {
		case s.test, s.file.Name.Name == "main":
			continue
		case s.pkg == "internal/testkit/exhaustive", s.pkg == "internal/testkit/program", s.pkg == "internal/testkit/watchdog", // every test binary's TestMain, in effect
			s.name == "internal/testkit/must/main.go": // every test program's main, in effect
			continue
		case s.pkg == "examples/internal/example", s.pkg == "internal/testkit/recipetest": // the main of all examples, and of the recipes' tests
			continue
		}
		say := func(pos token.Pos, what string) {
			findings = append(findings, fmt.Sprintf("%s: %s outside a main package", s.at(pos), what))
		}
		forbid := func(pkg string, names ...string) {
			s.uses(pkg, func(name string, pos token.Pos) {
				if slices.Contains(names, name) {
					say(pos, pkg+"."+name)
				}
			})
		}
		forbid("os", ".", "Exit", "Args")
		forbid("log", ".", "Fatal", "Fatalf", "Fatalln")
		forbid("flag", ".", "CommandLine", "Parse", "ExitOnError")
		if !strings.HasPrefix(s.pkg, "test/") { // a harness looks for its tools in the environment
			forbid("os", "Getenv", "LookupEnv", "Environ", "ExpandEnv")
		}
		for _, imp := range s.imports() {
			if imp.path == "os/signal" || imp.path == "flag" && !slices.Contains(commandLines, s.pkg) {
				say(imp.pos, "import of "+imp.path)
			}
		}
	}
	return findings
}

// commandLines are packages that are handed a command line: that of the server, or of a command
// beside it.
var commandLines = []string{"cmd/gozkd/internal/backup", "cmd/gozkd/internal/cli", "cmd/gozkd/internal/clientflags", "cmd/gozkd/internal/config", "cmd/gozkd/internal/inspect", "cmd/gozkd/internal/mirror", "cmd/gozkd/internal/moving", "cmd/gozkd/internal/shell", "cmd/gozkd/internal/status", "cmd/gozkd/internal/top"}

// directErrnos lists comparisons with errors of sockets, which are never true on Windows: see
// internal/neterr.
func directErrnos(srcs []source) []string {
	sockets := []string{"EADDRINUSE", "EADDRNOTAVAIL", "ECONNABORTED", "ECONNRESET", "ECONNREFUSED", "EPIPE"}
	var findings []string
	for _, s := range srcs {
		if s.test || s.pkg == "internal/neterr" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			var compared []ast.Expr
			switch n := n.(type) {
			case *ast.CallExpr:
				if types.ExprString(n.Fun) == "errors.Is" {
					compared = n.Args
				}
			case *ast.BinaryExpr:
				compared = []ast.Expr{n.X, n.Y}
			case *ast.CaseClause:
				compared = n.List
			}
			for _, e := range compared {
				if name, ok := strings.CutPrefix(types.ExprString(e), "syscall."); ok && slices.Contains(sockets, name) {
					findings = append(findings, fmt.Sprintf("%s: use neterr.Is for syscall.%s", s.at(e.Pos()), name))
				}
			}
			return true
		})
	}
	return findings
}

// clockPackages reports whether the server's rules about Config.Now count for a source.
func clockPackages(s source) bool {
	return !s.test && (s.pkg == "server" || s.pkg == "consensus" || strings.HasPrefix(s.pkg, "server/internal/"))
}

// callsIn calls f with each call in a function, and with whether a lock is held there: one that the
// function has acquired, or one of a caller that takes a function, in holders. Calls that run on
// another goroutine, or later, are left out.
func callsIn(d *ast.FuncDecl, holders []string, f func(call *ast.CallExpr, name string, held bool)) {
	held := 0
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			return false
		case *ast.DeferStmt:
			return !strings.HasSuffix(types.ExprString(n.Call.Fun), "Unlock")
		case *ast.CallExpr:
			name := types.ExprString(n.Fun)
			last := name[strings.LastIndex(name, ".")+1:]
			switch last {
			case "Lock", "RLock":
				if len(n.Args) == 0 { // otherwise a file is locked
					held++
				}
			case "Unlock", "RUnlock":
				held--
			case "Go", "AfterFunc", "Read":
				return false
			default:
				f(n, name, held > 0)
			}
			if slices.Contains(holders, last) {
				held++
				for _, arg := range n.Args {
					ast.Inspect(arg, visit)
				}
				held--
				return false
			}
		}
		return true
	}
	ast.Inspect(d, visit)
}

// timeUnderLocks lists readings of Config.Now while a lock is held, also by functions that are
// called then. In tests that pause a server Config.Now does not return meanwhile, and the time of a
// bubble stands still while a goroutine waits for a lock. allowed names functions for which that is
// no danger. Calls are followed by name alone, so only those of names that one function has.
func timeUnderLocks(allowed ...string) func(srcs []source) []string {
	holders := []string{"locked", "look"} // call functions with a lock held
	return func(srcs []source) (findings []string) {
		reads := map[string]string{} // by function that reads the clock: the way to the clock
		declared := map[string]int{}
		isClock := func(name string) bool { return strings.HasSuffix(name, ".Now") && name != "time.Now" }
		each := func(f func(s source, d *ast.FuncDecl)) {
			for _, s := range srcs {
				for _, d := range s.file.Decls {
					if d, ok := d.(*ast.FuncDecl); ok && clockPackages(s) && !slices.Contains(allowed, d.Name.Name) {
						f(s, d)
					}
				}
			}
		}
		way := func(name string) string {
			if isClock(name) {
				return name
			}
			return reads[name[strings.LastIndex(name, ".")+1:]]
		}
		each(func(_ source, d *ast.FuncDecl) { declared[d.Name.Name]++ })
		for _, ours := range []string{"Now", "Load", "Store", "Add", "Set", "Wait", "Close", "close", "New"} {
			declared[ours] = 0 // other packages have these names, too
		}
		for more := true; more; {
			more = false
			each(func(_ source, d *ast.FuncDecl) {
				if declared[d.Name.Name] != 1 {
					return
				}
				callsIn(d, holders, func(_ *ast.CallExpr, name string, _ bool) {
					if to := way(name); to != "" && reads[d.Name.Name] == "" {
						reads[d.Name.Name], more = d.Name.Name+", "+to, true
					}
				})
			})
		}
		each(func(s source, d *ast.FuncDecl) {
			callsIn(d, holders, func(call *ast.CallExpr, name string, held bool) {
				if to := way(name); held && to != "" {
					findings = append(findings,
						fmt.Sprintf("%s: %s is called while a lock is held, by way of %s", s.at(call.Pos()), name, to))
				}
			})
		})
		return findings
	}
}

// TestTimeUnderLocks: moveClock is for test kits, which do not pause a server meanwhile.
func TestTimeUnderLocks(t *testing.T) { report(t, timeUnderLocks("moveClock")(load(t))) }

func TestTimeUnderLocks_Finds(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"server/a.go", "c.Lock(); now := s.cfg.Now(); c.Unlock()", "s.cfg.Now is called"},
		{"server/a.go", "s.state.RLock(); defer s.state.RUnlock(); note(s.cfg.Now())", "s.cfg.Now is called"},
		{"server/internal/link/a.go", "l.mu.Lock(); defer func() { l.at = l.host.Now(); l.mu.Unlock() }()", "l.host.Now is called"},
		{"server/a.go", "c.Lock(); note(c); c.Unlock() }; func note() { c.at = c.cfg.Now()", "note is called"},
		{"server/a.go", "c.Lock(); c.note(); c.Unlock() }; func note() { begin() }; func begin() { c.cfg.Now()", "c.note is"},
		{"server/a.go", "c.locked(func() { c.at = c.cfg.Now() })", "c.cfg.Now is called"},
		{"server/a.go", "c.Lock(); go note(c); c.Unlock() }; func note() { c.at = c.cfg.Now()", ""},
		{"server/a.go", "c.Lock(); c.Unlock(); note(c) }; func note() { c.at = c.cfg.Now()", ""},
		{"server/a.go", "now := s.cfg.Now(); c.Lock(); c.Unlock(); note(now, s.cfg.Now())", ""},
		{"server/a.go", "c.Lock(); now := time.Now(); c.Unlock()", ""},
		{"server/a_test.go", "c.Lock(); now := s.cfg.Now(); c.Unlock()", ""},
		{"client/a.go", "c.Lock(); now := s.cfg.Now(); c.Unlock()", ""},
	} {
		text := "package p\nfunc f() { " + strings.ReplaceAll(c.text, "}; ", "}\n") + " }"
		mustFind(t, timeUnderLocks("g"), sample(t, c.name, text), c.want)
		mustFind(t, timeUnderLocks("f"), sample(t, c.name, text), "")
	}
}

// unwatched lists packages with tests and without a TestMain. Without one, the watchdog does not
// run, and a test that hangs does so until the limit of go test.
func unwatched(srcs []source) []string {
	watched := make(map[string]bool)
	for _, s := range srcs {
		if !s.test {
			continue
		}
		main := false
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			main = main || ok && f.Recv == nil && f.Name.Name == "TestMain"
		}
		watched[s.pkg] = watched[s.pkg] || main
	}
	var findings []string
	for pkg, ok := range watched {
		if !ok {
			findings = append(findings, pkg+": no TestMain calls internal/testkit/watchdog, so a test that hangs does so until the limit of go test")
		}
	}
	slices.Sort(findings)
	return findings
}

func TestTestsAreWatched(t *testing.T) { report(t, unwatched(load(t))) }

func TestTestsAreWatched_Finds(t *testing.T) {
	mustFind(t, unwatched, sample(t, "server/a_test.go", "package server\nfunc TestA(t *testing.T) {}"), "server: no TestMain")
	mustFind(t, unwatched, sample(t, "server/a_test.go", "package server\nfunc TestMain(m *testing.M) { watchdog.Watch(m).Run() }"), "")
	mustFind(t, unwatched, sample(t, "server/a.go", "package server"), "")
}

func TestGoroutinesAreAccountedFor(t *testing.T)  { report(t, strayGoroutines(load(t))) }
func TestExportedNamesAreDocumented(t *testing.T) { report(t, undocumented(load(t))) }
func TestProcessBelongsToMain(t *testing.T)       { report(t, processWide(load(t))) }

func TestErrnosOfSockets(t *testing.T) { report(t, directErrnos(load(t))) }

func TestErrnosOfSockets_Finds(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"server/a.go", "var b = errors.Is(err, syscall.ECONNRESET)", "neterr.Is for syscall.ECONNRESET"},
		{"server/a.go", "var b = err == syscall.EPIPE", "neterr.Is for syscall.EPIPE"},
		{"server/a.go", "func f() { switch err { case syscall.ECONNREFUSED: } }", "neterr.Is for syscall.ECONNREFUSED"},
		{"server/a.go", "var b = neterr.Is(err, syscall.EPIPE)", ""},
		{"server/a.go", "func f() error { return syscall.EPIPE }", ""},
		{"server/a.go", "var b = errors.Is(err, syscall.ENOSPC)", ""},
		{"internal/neterr/a.go", "var b = errors.Is(err, syscall.EPIPE)", ""},
	} {
		mustFind(t, directErrnos, sample(t, c.name, "package p\n"+c.text), c.want)
	}
}

func TestGoroutinesAreAccountedFor_Finds(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"func f() {\n\tgo f()\n}", "go statement"},
		{"func f() {\n\t// Close stops it and waits.\n\n\tgo f()\n}", "go statement"},
		{"func f() {\n\t// Ends with ctx,\n\t// awaited by Close.\n\tgo f()\n}", ""},
	} {
		mustFind(t, strayGoroutines, sample(t, "server/a.go", "package p\n"+c.text+"\n"), c.want)
	}
}

func TestExportedNamesAreDocumented_Finds(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"func F() {}", "exported F"},
		{"type T int", "exported T"},
		{"var a, V = 1, 2", "exported V"},
		{"const (\n\tC = 1\n)", "exported C"},
		{"const (\n\tC = 1 // the first\n)", ""},
		{"// Three things.\nconst (\n\tC = 1\n)", ""},
		{"// T is.\ntype T int\nfunc (t *T) M() {}", "exported M"},
		{"// T is.\ntype T[A any] int\nfunc (t *T[A]) M() {}", "exported M"},
		{"// T is.\ntype T int\nfunc (t T) String() string { return \"\" }", ""},
		{"type t int\nfunc (t *t) M() {}", ""},
	} {
		mustFind(t, undocumented, sample(t, "server/a.go", "// Package p is.\npackage p\n"+c.text+"\n"), c.want)
	}
	mustFind(t, undocumented, sample(t, "server/a.go", "package p\n"), "no package comment")
}

func TestProcessBelongsToMain_Finds(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"server/a.go", "package server\nimport \"os\"\nfunc f() { os.Exit(1) }", "os.Exit"},
		{"server/a.go", "package server\nimport \"os\"\nvar home = os.Getenv(\"HOME\")", "os.Getenv"},
		{"server/a.go", "package server\nimport \"os/signal\"\nvar f = signal.Stop", "os/signal"},
		{"server/a.go", "package server\nimport \"flag\"\nvar f = flag.NewFlagSet", "import of flag"},
		{"cmd/gozkd/internal/config/a.go", "package config\nimport \"flag\"\nvar f = flag.NewFlagSet", ""},
		{"cmd/gozkd/internal/config/a.go", "package config\nimport \"flag\"\nvar f = flag.Parse", "flag.Parse"},
		{"test/compat/server/a.go", "package server\nimport \"os\"\nvar home = os.Getenv(\"HOME\")", ""},
		{"cmd/gozkd/a.go", "package main\nimport \"os\"\nfunc f() { os.Exit(1) }", ""},
	} {
		mustFind(t, processWide, sample(t, c.name, c.text), c.want)
	}
}
