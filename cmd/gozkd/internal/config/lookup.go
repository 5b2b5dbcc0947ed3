package config

import (
	"slices"
	"strings"
)

// lookup finds the row of a key: by name or alias, with or without the prefix "zookeeper.",
// otherwise by the longest prefix of a pattern. canonical is the name of the row, with the star
// replaced.
func lookup(written string) (row key, canonical string, ok bool) {
	bare := strings.TrimPrefix(written, "zookeeper.")
	for _, k := range keys {
		if k.name == bare || slices.Contains(k.aliases, bare) {
			return k, k.name, true
		}
	}
	for _, k := range keys {
		prefix, isPattern := strings.CutSuffix(k.name, "*")
		if isPattern && strings.HasPrefix(bare, prefix) && len(bare) > len(prefix) && len(k.name) > len(row.name) {
			row, canonical, ok = k, bare, true
		}
	}
	return row, canonical, ok
}

// similar returns the most similar known key, or "".
func similar(written string) string {
	bare := strings.TrimPrefix(written, "zookeeper.")
	best, bestDistance := "", max(2, len(bare)/4)+1
	for _, k := range keys {
		for _, name := range append([]string{k.name}, k.aliases...) {
			d := distance(strings.ToLower(bare), strings.ToLower(name), bestDistance)
			if d < bestDistance && !strings.HasSuffix(name, "*") {
				best, bestDistance = k.name, d
			}
		}
	}
	return best
}

// Nearest returns the most similar name, or "".
func Nearest(written string, names []string) string {
	best, bestDistance := "", max(2, len(written)/3)+1
	for _, name := range names {
		if d := distance(strings.ToLower(written), strings.ToLower(name), bestDistance); d < bestDistance {
			best, bestDistance = name, d
		}
	}
	return best
}

// distance returns the Levenshtein distance of a and b. If it is at least limit, distance may
// return any value of at least limit.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
