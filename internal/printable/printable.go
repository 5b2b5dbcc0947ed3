// Package printable makes text that came from clients safe to show in a log line, in the answer to
// a four-letter word, or on a terminal. Paths of znodes need no escaping, but a client can name any
// path in a request or a watch.
package printable

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns text with line ends, control characters and invalid UTF-8 escaped as in a Go string.
func Text(text string) string {
	odd := func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }
	if !strings.ContainsFunc(text, odd) {
		return text
	}
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}

// Size returns a number of bytes in B, KiB or MiB.
func Size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// Dotted returns text with a dot for each character that is not printable, for a terminal's table.
func Dotted(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '·'
		}
		return r
	}, text)
}

// packages matches the names of our packages that the text of an error begins with.
var packages = regexp.MustCompile(`^((archive|client|cluster|consensus|datatree|faultproxy|kerberos|memnet|peer|principal|` +
	`proto|sasl|server|vfs|wal|web|zktest|zookeeper): )+`)

// goFields matches the fields of a Config that an error names beside keys.
var goFields = regexp.MustCompile(`, or Config\.\w+`)

// Error returns the text of an error for people, who need not know our packages: without the names
// of packages that the texts of err and of all errors in it begin with, and without fields.
func Error(err error) string {
	var inner []error
	switch e := err.(type) { //nolint:errorlint // each error of the tree gets its turn
	case interface{ Unwrap() error }:
		inner = []error{e.Unwrap()}
	case interface{ Unwrap() []error }:
		inner = e.Unwrap()
	}
	text := err.Error()
	for _, e := range inner {
		if e == nil {
			continue
		}
		if whole := e.Error(); whole != "" {
			if at := strings.LastIndex(text, whole); at >= 0 {
				text = text[:at] + Error(e) + text[at+len(whole):]
			}
		}
	}
	return packages.ReplaceAllString(goFields.ReplaceAllString(text, ""), "")
}

// JSON returns the same JSON with those characters escaped that a terminal might take for a control
// sequence. They can only occur within strings.
func JSON(b []byte) string {
	if !bytes.ContainsFunc(b, hidden) {
		return string(b)
	}
	var text strings.Builder
	for _, r := range string(b) {
		if hidden(r) {
			writeEscaped(&text, r)
		} else {
			text.WriteRune(r)
		}
	}
	return text.String()
}

// Quoted returns text as a string of JSON, with the same characters escaped. A byte that is not
// UTF-8 becomes U+FFFD.
func Quoted(text string) string {
	var quoted strings.Builder
	quoted.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			quoted.WriteByte('\\')
			quoted.WriteRune(r)
		case r < ' ' || hidden(r):
			writeEscaped(&quoted, r)
		default:
			quoted.WriteRune(r)
		}
	}
	quoted.WriteByte('"')
	return quoted.String()
}

func hidden(r rune) bool { return r > 0x7e && !unicode.IsPrint(r) }

func writeEscaped(text *strings.Builder, r rune) {
	for _, unit := range utf16.Encode([]rune{r}) {
		fmt.Fprintf(text, `\u%04x`, unit)
	}
}

// Shortened returns at most limit bytes of text, followed by an ellipsis if the text is longer.
func Shortened(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…"
}
