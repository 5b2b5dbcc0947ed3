package exchange

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// The table in code and docs/reference/differences.md list the same ids.
func TestDifferences_AreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/reference/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented, listed []string
	for line := range strings.Lines(string(text)) {
		if id, ok := strings.CutPrefix(line, "### "); ok {
			documented = append(documented, strings.TrimSpace(id))
		}
	}
	for _, d := range Differences() {
		listed = append(listed, d.ID)
		if d.Reason == "" {
			t.Errorf("%s has no reason", d.ID)
		}
		if kinds := btoi(d.Allows != nil) + btoi(d.Avoided != "") + btoi(d.Gaps); kinds != 1 {
			t.Errorf("%s must be allowed, avoided or gaps: one of them", d.ID)
		}
	}
	slices.Sort(documented)
	slices.Sort(listed)
	if !slices.Equal(documented, listed) {
		t.Errorf("documented %q\nlisted     %q", documented, listed)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
