package cli

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// Nearest returns the most similar name, or "": one letter in many may differ, and always one of
// three or more, or two that are swapped. Case does not count.
func Nearest(written string, names []string, many int) (best string) {
	limit := max(len([]rune(written))/many, min(1, len([]rune(written))/3))
	written = strings.ToLower(written)
	for _, name := range names {
		lower := strings.ToLower(name)
		d := levenshtein.ComputeDistance(written, lower)
		swapped := d == 2 && len(written) == len(lower) && strings.Trim(written, lower)+strings.Trim(lower, written) == ""
		if d <= limit || swapped && limit == 1 {
			best, limit = name, d-1
		}
	}
	return best
}
