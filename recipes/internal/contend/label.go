package contend

import (
	"strings"

	"github.com/gozkd/gozkd/recipes"
)

// guidLength is that of what Curator puts before a protected name.
const guidLength = len("_c_00000000-0000-0000-0000-000000000000-")

// Label returns what stands between GUID and number in the name of a znode that Join has made with the name label and "-"; "" if it has none.
func Label(name string) string {
	_, before, ok := recipes.Sequence(name)
	if !ok || len(before) <= guidLength || !strings.HasPrefix(before, "_c_") || !strings.HasSuffix(before, "-") {
		return ""
	}
	return before[guidLength : len(before)-1]
}
