package shell

import "regexp"

// wordPattern matches a word as zkCli.sh does: a quote begins a quoted word only at the beginning
// of a word, and a quote cannot be escaped.
var wordPattern = regexp.MustCompile("[ \\t\\n\\x0B\\f\\r]*([^\"'][^ \\t\\n\\x0B\\f\\r]*|\"[^\"]*\"|'[^']*')[ \\t\\n\\x0B\\f\\r]*")

// split splits a line into words and removes the quotes. A blank line has no words.
func split(line string) []string {
	var words []string
	for _, m := range wordPattern.FindAllStringSubmatch(line, -1) {
		w := m[1]
		if len(w) >= 2 && (w[0] == '"' || w[0] == '\'') && w[len(w)-1] == w[0] {
			w = w[1 : len(w)-1]
		}
		words = append(words, w)
	}
	if len(words) == 1 && isBlank(words[0]) {
		return nil
	}
	return words
}

func isBlank(s string) bool {
	for i := range len(s) {
		switch s[i] {
		case ' ', '\t', '\n', '\v', '\f', '\r':
		default:
			return false
		}
	}
	return len(s) > 0
}
