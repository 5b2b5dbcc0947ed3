package server

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
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

// printableJSON returns the same JSON with what a terminal might take for an order, which stands in strings alone, escaped.
func printableJSON(b []byte) string {
	odd := func(r rune) bool { return r > 0x7e && !unicode.IsPrint(r) }
	if !bytes.ContainsFunc(b, odd) {
		return string(b)
	}
	var text strings.Builder
	for _, r := range string(b) {
		if !odd(r) {
			text.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&text, `\u%04x`, unit)
		}
	}
	return text.String()
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
