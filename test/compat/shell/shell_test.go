package shell

import (
	"regexp"
	"strings"
	"testing"
)

// The scripts can be read, have cases of which each has patterns, and every pattern compiles.
func TestReadScript(t *testing.T) {
	older, err := readScript("zkcli", zkCliText, false)
	if err != nil {
		t.Fatal(err)
	}
	newer, err := readScript("zkcli", zkCliText, true)
	if err != nil || len(newer.work) <= len(older.work) {
		t.Fatalf("%d cases, of the newer shell %d, error %v", len(older.work), len(newer.work), err)
	}
	cli, err := readScript("climt", cliMTText, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []script{newer, cli} {
		works := append(s.work, work{"begin", s.begin}, work{"leave", s.leave}, work{"leftover", s.leftover})
		for _, w := range works {
			wanted := 0
			for _, st := range w.steps {
				if _, err := regexp.Compile("(?ms)" + st.want); err != nil {
					t.Errorf("%s, %s: %v", s.name, w.name, err)
				}
				if strings.Contains(st.want, "<") {
					t.Errorf("%s, %s: nothing is defined for a name in %s", s.name, w.name, st.want)
				}
				if st.want != "" {
					wanted++
				}
			}
			if wanted == 0 {
				t.Errorf("%s, %s has no pattern", s.name, w.name)
			}
		}
	}
	for _, text := range []string{"version", "case a\n\n> version", "case a\n> version\n^x$\n^y$"} {
		if _, err := readScript("x", text, false); err == nil {
			t.Errorf("no error for %q", text)
		}
	}
}
