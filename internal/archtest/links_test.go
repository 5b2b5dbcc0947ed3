package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// index is the page from which every page below docs must be reachable.
const index = "docs/README.md"

// pagesWithLinks returns the Markdown pages whose links are checked, by their path in the module:
// all below docs, and those that stand beside the code.
func pagesWithLinks(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for name, page := range pages(t) {
		all[path.Join("docs", name)] = page
	}
	for _, name := range []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "examples/README.md"} {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(text)
	}
	return all
}

// TestDocsLinks checks that no relative link is broken, neither its file nor its heading, and that
// every page below docs can be reached from the index.
func TestDocsLinks(t *testing.T) {
	all := pagesWithLinks(t)
	exists := func(name string) bool {
		_, err := os.Stat(filepath.Join(root, filepath.FromSlash(name)))
		return err == nil
	}
	for _, problem := range linkProblems(all, index, exists) {
		t.Error(problem)
	}
}

// linkProblems returns broken links and unreachable pages, sorted.
//
//	all     text by path
//	exists  reports whether there is a file or directory with a path
func linkProblems(all map[string]string, index string, exists func(name string) bool) []string {
	var problems []string
	targets := make(map[string][]string) // the pages that a page links to
	for from, page := range all {
		for _, l := range links(page) {
			name, heading, _ := strings.Cut(l, "#")
			to := from
			if name != "" {
				to = path.Join(path.Dir(from), name)
			}
			text, isPage := all[to]
			switch {
			case !isPage && !exists(to):
				problems = append(problems, fmt.Sprintf("%s links to %s, which does not exist", from, l))
			case isPage && heading != "" && !slices.Contains(anchors(text), heading):
				problems = append(problems, fmt.Sprintf("%s links to %s, and %s has no such heading", from, l, to))
			}
			targets[from] = append(targets[from], to)
		}
	}
	reached := map[string]bool{index: true}
	for next := []string{index}; len(next) > 0; next = next[1:] {
		for _, to := range targets[next[0]] {
			if !reached[to] {
				reached[to] = true
				next = append(next, to)
			}
		}
	}
	for name := range maps.Keys(all) {
		if strings.HasPrefix(name, "docs/") && !reached[name] {
			problems = append(problems, fmt.Sprintf("%s cannot be reached from %s: add a link", name, index))
		}
	}
	slices.Sort(problems)
	return problems
}

var (
	fencedBlock  = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	inlineCode   = regexp.MustCompile("`[^`\n]+`")
	markdownLink = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading      = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	notInAnchor  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// links returns the relative links of a page.
func links(page string) []string {
	var found []string
	for _, m := range markdownLink.FindAllStringSubmatch(withoutCode(page), -1) {
		if !strings.Contains(m[1], "://") && !strings.HasPrefix(m[1], "mailto:") {
			found = append(found, m[1])
		}
	}
	return found
}

// anchors returns the names of a page's headings in links, as GitHub derives them.
func anchors(page string) []string {
	var found []string
	for _, m := range heading.FindAllStringSubmatch(fencedBlock.ReplaceAllString(page, ""), -1) {
		title := markdownLink.ReplaceAllString(m[1], "]")
		name := strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
		for n, unique := 1, name; ; n++ {
			if !slices.Contains(found, unique) {
				found = append(found, unique)
				break
			}
			unique = fmt.Sprintf("%s-%d", name, n)
		}
	}
	return found
}

func withoutCode(page string) string {
	return inlineCode.ReplaceAllString(fencedBlock.ReplaceAllString(page, ""), "")
}

// pageNamed is a page as comments and messages name it.
var pageNamed = regexp.MustCompile(`\bdocs/[\w/.-]+\.md\b`)

// TestDocsNamed checks that the pages that comments and messages of Go files name exist.
func TestDocsNamed(t *testing.T) {
	n := 0
	for _, s := range load(t) {
		if s.pkg == "internal/archtest" {
			continue // names pages that are examples
		}
		check := func(text string, pos token.Pos) {
			for _, name := range pageNamed.FindAllString(text, -1) {
				n++
				if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(name))); err != nil {
					t.Errorf("%s names %s, which does not exist", s.at(pos), name)
				}
			}
		}
		ast.Inspect(s.file, func(node ast.Node) bool {
			if lit, ok := node.(*ast.BasicLit); ok {
				check(lit.Value, lit.Pos())
			}
			return true
		})
		for _, group := range s.file.Comments {
			check(group.Text(), group.Pos())
		}
	}
	if n < 30 {
		t.Errorf("found %d names of pages: the pattern is broken", n)
	}
}

func TestDocsLinks_Finds(t *testing.T) {
	all := map[string]string{
		"docs/README.md":   "# Index\n[a](guide/a.md#the-first-words) [code](../main.go) [web](https://example.com/none.md)\n",
		"docs/guide/a.md":  "# A\n## The `first` words\n[missing](b.md) [no heading](../README.md#nothing) [own](#a)\n```\n[in code](none.md)\n```\n`[inline](none.md)`\n",
		"docs/guide/c.md":  "# C\n[a](a.md)\n",
		"examples/list.md": "# Nobody links to this page, and need not\n",
	}
	got := linkProblems(all, "docs/README.md", func(name string) bool { return name == "main.go" })
	want := []string{
		"docs/guide/a.md links to ../README.md#nothing, and docs/README.md has no such heading",
		"docs/guide/a.md links to b.md, which does not exist",
		"docs/guide/c.md cannot be reached from docs/README.md: add a link",
	}
	if !slices.Equal(got, want) {
		t.Errorf("problems\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// modulePlace finds code spans that name a file or directory of the module.
var modulePlace = regexp.MustCompile("`((?:admin|bench|client|cmd|consensus|datatree|deploy|docs|examples|internal|metrics|proto|recipes|server|session|test|wal|watch|zktest)(?:/[A-Za-z0-9_.*-]+)+)`")

// TestDocs_PlacesExist checks that the files and directories that pages name exist.
func TestDocs_PlacesExist(t *testing.T) {
	n := 0
	for name, page := range pagesWithLinks(t) {
		for _, m := range modulePlace.FindAllStringSubmatch(page, -1) {
			n++
			if found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(m[1]))); err != nil || len(found) == 0 {
				t.Errorf("%s names %s, which does not exist", name, m[1])
			}
		}
	}
	if n < 30 {
		t.Errorf("the pages name only %d files: the pattern is broken", n)
	}
}
