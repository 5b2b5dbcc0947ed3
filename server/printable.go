package server

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// printable returns a path as words and log lines may show it: what would end a line, or be an order to a terminal, is escaped as in a Go string.
// No znode has such a path, but a client can ask and watch for any.
func printable(path string) string {
	odd := func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }
	if !strings.ContainsFunc(path, odd) {
		return path
	}
	quoted := strconv.Quote(path)
	return quoted[1 : len(quoted)-1]
}

// shortened returns the beginning of a path, of at most so many bytes, with an ellipsis where more was.
func shortened(path string, most int) string {
	if len(path) <= most {
		return path
	}
	for most > 0 && !utf8.RuneStart(path[most]) {
		most--
	}
	return path[:most] + "…"
}
