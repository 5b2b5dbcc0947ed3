package exchange

import (
	"fmt"
	"io"
	"maps"
	"slices"
)

// Print writes t for people: requests and replies in words.
func Print(w io.Writer, t *Transcript) {
	for i := range t.Steps {
		step := &t.Sequence.Steps[i]
		fmt.Fprintf(w, "  %d %s\n", i, step.head())
		for k := range step.Send {
			fmt.Fprintf(w, "      > %s\n", step.Send[k].describe())
		}
		for _, m := range t.Messages(i) {
			fmt.Fprintf(w, "      < %v\n", &m)
		}
	}
	for _, slot := range slices.Sorted(maps.Keys(t.Flush)) {
		fmt.Fprintf(w, "  flush conn=%d\n", slot)
		for _, m := range t.Messages(len(t.Steps) + slot) {
			fmt.Fprintf(w, "      < %v\n", &m)
		}
	}
}
