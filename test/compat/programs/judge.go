package main

import (
	"fmt"
	"strings"
)

// values returns the rest of each line that starts with the word.
func values(output, word string) []string {
	var list []string
	for line := range strings.Lines(output) {
		if rest, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), word+" "); ok {
			list = append(list, rest)
		}
	}
	return list
}

// kept returns an error if an acknowledged id was not found, or any id was found twice. Ids that
// were not acknowledged may be found, because their replies may have been lost.
func kept(acked, found []string) error {
	times := make(map[string]int)
	for _, id := range found {
		if times[id]++; times[id] > 1 {
			return fmt.Errorf("%q is there %d times", id, times[id])
		}
	}
	for i, id := range acked {
		if times[id] == 0 {
			return fmt.Errorf("%q, acknowledged as number %d of %d, is lost; %d are there", id, i+1, len(acked), len(found))
		}
	}
	if len(acked) == 0 {
		return fmt.Errorf("nothing was acknowledged")
	}
	return nil
}
