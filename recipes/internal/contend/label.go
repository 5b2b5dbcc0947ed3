package contend

import (
	"strings"

	"github.com/gozkd/gozkd/internal/sequence"
)

// guidLength is the length of the prefix of a protected znode.
const guidLength = len("_c_00000000-0000-0000-0000-000000000000-")

// Label returns the part between GUID and number in the name of a znode that Join created with the
// name label+"-"; "" for any other znode.
func Label(name string) string {
	_, before, ok := sequence.Parse(name)
	if !ok || len(before) <= guidLength || !strings.HasPrefix(before, "_c_") || !strings.HasSuffix(before, "-") {
		return ""
	}
	return before[guidLength : len(before)-1]
}
