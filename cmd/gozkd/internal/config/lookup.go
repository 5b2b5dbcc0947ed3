package config

import (
	"slices"
	"strings"
)

// lookup finds the row of a key: by name or alias, with or without the prefix "zookeeper.",
// otherwise by the longest prefix of a pattern. canonical is the name of the row, with the actual
// text in place of the star.
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
	var names []string
	for _, k := range keys {
		for _, name := range append([]string{k.name}, k.aliases...) {
			if !strings.HasSuffix(name, "*") {
				names = append(names, name)
			}
		}
	}
	name := nearest(bare, names, max(2, len(bare)/4))
	row, _, _ := lookup(name)
	return row.name
}

// Nearest returns the most similar name, or "" if none is similar.
func Nearest(written string, names []string) string {
	return nearest(written, names, max(2, len(written)/3))
}

// nearest returns the name with the smallest distance, up to limit, or "".
func nearest(written string, names []string, limit int) (best string) {
	for _, name := range names {
		if d := distance(strings.ToLower(written), strings.ToLower(name), limit+1); d <= limit {
			best, limit = name, d-1
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
