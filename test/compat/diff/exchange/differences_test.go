package exchange

import (
	"os"
	"strings"
	"testing"
)

// docs/reference/differences.md explains each Difference, under an id of its own.
func TestDifferences_AreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/reference/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string]bool)
	for line := range strings.Lines(string(text)) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "### "); ok {
			if documented[id] {
				t.Errorf("%s is documented twice", id)
			}
			documented[id] = true
		}
	}
	for _, d := range Differences() {
		if !documented[d.ID] {
			t.Errorf("%s is not documented", d.ID)
		}
		if (d.Allows != nil) == d.Gaps {
			t.Errorf("%s must either allow mismatches or have gaps", d.ID)
		}
	}
}
