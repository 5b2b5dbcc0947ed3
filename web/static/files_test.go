package static_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

func TestMain(m *testing.M) { watchdog.Watch(m).Run() }

// read returns the files of the explorer by name.
func read(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)
	root := os.DirFS(".")
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && name == "zipped" {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || path.Ext(name) == ".go" {
			return err
		}
		b, err := fs.ReadFile(root, name)
		all[name] = string(b)
		return err
	})
	if err != nil || len(all) < 20 {
		t.Fatalf("%d files, error %v", len(all), err)
	}
	return all
}

// A znode's content must never be parsed as HTML or run as a script (W5), and the policy of the
// answers allows nothing from elsewhere.
var forbidden = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|parseFromString` +
	`|\beval\(|new Function|setTimeout\(['"]|javascript:|setAttribute\(['"]style|srcdoc|style="|\son[a-z]+="|https?://[^\s'"<]*`)

// allowed are addresses that are names or examples.
var allowed = regexp.MustCompile(`^http://(www\.w3\.org/2000/svg|127\.0\.0\.1:8080/znodes/v2/)$`)

func TestFiles_NothingBecomesMarkup(t *testing.T) {
	for name, text := range read(t) {
		for _, found := range forbidden.FindAllString(text, -1) {
			if !allowed.MatchString(found) {
				t.Errorf("%s has %q", name, found)
			}
		}
	}
}

func TestFiles_Size(t *testing.T) {
	const most, mostLines = 400 << 10, 500
	sum := 0
	for name, text := range read(t) {
		sum += len(text)
		if n := strings.Count(text, "\n"); n > mostLines {
			t.Errorf("%s has %d lines: split it at %d", name, n, mostLines)
		}
	}
	if sum > most {
		t.Errorf("the explorer has %d bytes, allowed are %d", sum, most)
	}
	t.Logf("%d bytes", sum)
}

var (
	importing = regexp.MustCompile(`(?s)import (?:\* as \w+|\{([^}]*)\}) from '([^']+)'`)
	lazy      = regexp.MustCompile(`import\('([^']+)'\)`)
	exporting = regexp.MustCompile(`(?m)^export (?:async )?(?:function|const|class|let) (\w+)`)
)

// Without a build step nothing else notices an import of a name that does not exist until a browser
// loads the page.
func TestFiles_ImportsExist(t *testing.T) {
	all := read(t)
	for name, text := range all {
		if path.Ext(name) != ".js" {
			continue
		}
		for _, m := range lazy.FindAllStringSubmatch(text, -1) {
			if target := path.Join(path.Dir(name), m[1]); all[target] == "" {
				t.Errorf("%s imports %s, which does not exist", name, target)
			}
		}
		for _, m := range importing.FindAllStringSubmatch(text, -1) {
			target := path.Join(path.Dir(name), m[2])
			exported := make(map[string]bool)
			for _, e := range exporting.FindAllStringSubmatch(all[target], -1) {
				exported[e[1]] = true
			}
			for _, want := range strings.Split(m[1], ",") {
				if want = strings.TrimSpace(want); want == "" {
					continue
				}
				want, local, _ := strings.Cut(want, " as ")
				if local == "" {
					local = want
				}
				if !exported[want] {
					t.Errorf("%s imports %s from %s, which does not export it", name, want, target)
				}
				if len(regexp.MustCompile(`\b`+local+`\b`).FindAllString(text, 2)) < 2 {
					t.Errorf("%s imports %s from %s and does not use it", name, want, target)
				}
			}
		}
	}
}

var (
	usesProperty   = regexp.MustCompile(`var\((--[\w-]+)`)
	setsProperty   = regexp.MustCompile(`(--[\w-]+)['"]?[:,]`)
	usesIcon       = regexp.MustCompile(`icon(?:Name: |\()'(\w+)'`)
	iconNames      = regexp.MustCompile(`(\w+): 'M`)
	otherIconNames = regexp.MustCompile(`iconName: \w+ \? '(\w+)' : '(\w+)'`)
)

func TestFiles_NamesOfTheDesignExist(t *testing.T) {
	all := read(t)
	set, icons := make(map[string]bool), make(map[string]bool)
	for _, m := range iconNames.FindAllStringSubmatch(all["js/dom.js"], -1) {
		icons[m[1]] = true
	}
	for _, text := range all {
		for _, m := range setsProperty.FindAllStringSubmatch(text, -1) {
			set[m[1]] = true
		}
	}
	for name, text := range all {
		for _, m := range usesProperty.FindAllStringSubmatch(text, -1) {
			if !set[m[1]] {
				t.Errorf("%s uses %s, which nothing sets", name, m[1])
			}
		}
		for _, m := range append(usesIcon.FindAllStringSubmatch(text, -1), otherIconNames.FindAllStringSubmatch(text, -1)...) {
			for _, icon := range m[1:] {
				if !icons[icon] {
					t.Errorf("%s uses the icon %s, which js/dom.js does not have", name, icon)
				}
			}
		}
	}
}
