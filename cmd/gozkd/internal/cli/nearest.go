package cli

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// Nearest returns the name that is most similar to a written one, or "" if none is: at most one
// letter in so many, but always two letters, may differ.
func Nearest(written string, names []string, many int) (best string) {
	limit := max(2, len(written)/many)
	for _, name := range names {
		if d := levenshtein.ComputeDistance(strings.ToLower(written), strings.ToLower(name)); d <= limit {
			best, limit = name, d-1
		}
	}
	return best
}
