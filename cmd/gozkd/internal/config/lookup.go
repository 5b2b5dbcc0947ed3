package config

import (
	"slices"
	"strings"
)

// lookup finds the row for a key as somebody wrote it: by name, by another name, with or without "zookeeper."
// in front, and last by the longest prefix. canonical is the row's name, with the star replaced by what was written.
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

// similar returns the known key that is nearest to an unknown one, or "" if none is near.
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

// Nearest returns the name that a mistyped one is nearest to, or "" if none is near.
func Nearest(written string, names []string) string {
	best, bestDistance := "", max(2, len(written)/3)+1
	for _, name := range names {
		if d := distance(strings.ToLower(written), strings.ToLower(name), bestDistance); d < bestDistance {
			best, bestDistance = name, d
		}
	}
	return best
}

// distance is the number of characters to insert, delete or replace to get from a to b, or anything not below
// limit once that is certain.
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
