package archtest

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// misnamed lists doc comments that do not begin with the name of what they document, after an
// article at most: most of them stand on the wrong declaration. A comment on several names may
// begin with any word.
func misnamed(srcs []source) []string {
	var findings []string
	for _, s := range srcs {
		if s.test || ast.IsGenerated(s.file) {
			continue
		}
		check := func(doc *ast.CommentGroup, id *ast.Ident) {
			words := strings.Fields(doc.Text()) // none of a directive, or without a comment
			if len(words) > 1 && slices.Contains([]string{"A", "An", "The"}, words[0]) {
				words = words[1:]
			}
			if len(words) > 0 && strings.TrimRight(strings.TrimSuffix(words[0], "'s"), ",.:;") != id.Name {
				findings = append(findings, fmt.Sprintf("%s: the comment on %s begins with %q", s.at(doc.Pos()), id.Name, words[0]))
			}
		}
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				check(d.Doc, d.Name)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						check(spec.Doc, spec.Name)
						if len(d.Specs) == 1 {
							check(d.Doc, spec.Name)
						}
					case *ast.ValueSpec:
						if len(d.Specs) == 1 && len(spec.Names) == 1 && !d.Lparen.IsValid() {
							check(d.Doc, spec.Names[0])
						}
					}
				}
			}
		}
	}
	return findings
}

func TestDocComments_BeginWithTheName(t *testing.T) { report(t, misnamed(load(t))) }

func TestDocComments_BeginWithTheName_Finds(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"// g does.\nfunc f() {}", `a.go:2: the comment on f begins with "g"`},
		{"// fx does.\nfunc (t *T) f() {}", `the comment on f begins with "fx"`},
		{"// Holds.\ntype T struct{}", `the comment on T begins with "Holds."`},
		{"type (\n\t// Holds.\n\tT struct{}\n)", `the comment on T begins with "Holds."`},
		{"// Bound of g.\nconst f = 1", `the comment on f begins with "Bound"`},
		{"// f does.\nfunc f() {}", ""},
		{"// A T holds.\ntype T struct{}", ""},
		{"// The f's bound.\nvar f int", ""},
		{"//go:noinline\nfunc f() {}", ""},
		{"// Bounds of g.\nconst f, h = 1, 2", ""},
		{"// Bounds of g.\nconst (\n\tf = 1\n\th = 2\n)", ""},
	} {
		mustFind(t, misnamed, sample(t, "wal/a.go", "package p\n"+c.text), c.want)
	}
	mustFind(t, misnamed, sample(t, "wal/a_test.go", "package p\n// g does.\nfunc f() {}"), "")
}
