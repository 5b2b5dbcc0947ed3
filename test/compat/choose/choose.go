// Package choose reads flags that name some of what a program can run.
package choose

import (
	"fmt"
	"slices"
	"strings"
)

// From returns those of all that a list names, with commas, in the order of all; "all" names all.
func From[T any](all []T, name func(T) string, list string) ([]T, error) {
	if list == "all" {
		return all, nil
	}
	wanted := strings.Split(list, ",")
	var chosen []T
	for _, x := range all {
		if i := slices.Index(wanted, name(x)); i >= 0 {
			chosen = append(chosen, x)
			wanted = slices.Delete(wanted, i, i+1)
		}
	}
	if len(wanted) > 0 {
		return nil, fmt.Errorf("unknown: %s; known: %s", strings.Join(wanted, ", "), Names(all, name))
	}
	return chosen, nil
}

// Names returns the comma-separated names of all.
func Names[T any](all []T, name func(T) string) string {
	var list []string
	for _, x := range all {
		list = append(list, name(x))
	}
	return strings.Join(list, ", ")
}
