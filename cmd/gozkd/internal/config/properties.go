package config

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/magiconair/properties"
)

// property is a key and a value, both trimmed as ZooKeeper trims them.
type property struct {
	key, value string
	line       int // the line where the property begins, from 1
}

// readProperties parses a UTF-8 file in the format of java.util.Properties: comments, continuation
// lines, escapes, and '=', ':' or white space between key and value. The order is that of the file,
// and keys may repeat. Invalid lines are returned as problems, along with the valid lines.
//
// The file is split into logical lines, each of which is passed to the library, because the library
// does not report line numbers, drops repeated keys, and loses a continuation before CR LF.
func readProperties(file string, data []byte) ([]property, []Problem) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	loader := properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}
	var props []property
	var problems []Problem
	for _, l := range logicalLines(string(data)) {
		bad := func(what string) {
			problems = append(problems, Problem{From: Origin{Source: file, Line: l.number}, What: what})
		}
		if !utf8.ValidString(l.text) {
			bad("is not UTF-8: save the file as UTF-8, or write the character as \\uXXXX")
			continue
		}
		if strings.ContainsRune("=:", rune(l.text[0])) { // NB: the library leaks a goroutine on such a line
			bad("has a value without a key")
			continue
		}
		p, err := loader.LoadBytes([]byte(l.text))
		if err != nil {
			bad("cannot be read: " + strings.TrimPrefix(err.Error(), "properties: Line 1: "))
			continue
		}
		for _, k := range p.Keys() {
			v, _ := p.Get(k)
			props = append(props, property{key: trim(k), value: trim(v), line: l.number})
		}
	}
	return props, problems
}

type logicalLine struct {
	text   string // not empty, does not begin with white space
	number int
}

// logicalLines joins continued lines and drops blank lines and comments, by the rules of
// java.util.Properties.load. A line ends with LF, CR or CR LF. An odd number of backslashes at the
// end continues a line, unless the line is a comment. Leading white space is dropped.
func logicalLines(text string) []logicalLine {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	var lines []logicalLine
	var joined strings.Builder
	start := 0 // number of the first line of joined; 0 if joined is empty
	flush := func() {
		if s := joined.String(); s != "" {
			if s[0] == '#' || s[0] == '!' {
				s = `\` + s // a continuation line is never a comment
			}
			lines = append(lines, logicalLine{text: s, number: start})
		}
		joined.Reset()
		start = 0
	}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimLeft(line, " \t\f")
		if start == 0 {
			if line == "" || line[0] == '#' || line[0] == '!' {
				continue
			}
			start = i + 1
		}
		backslashes := len(line) - len(strings.TrimRight(line, `\`))
		if backslashes%2 == 1 {
			joined.WriteString(line[:len(line)-1])
			continue
		}
		joined.WriteString(line)
		flush()
	}
	flush()
	return lines
}

// trim is java.lang.String.trim, which ZooKeeper applies to keys and values.
func trim(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' })
}
