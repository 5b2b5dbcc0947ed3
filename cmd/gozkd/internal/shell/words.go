package shell

import "regexp"

// wordPattern is how ZooKeeper's shell cuts a line into words: a quote begins a quoted word at the beginning of a word
// only, and there is no way to escape one.
var wordPattern = regexp.MustCompile("[ \\t\\n\\x0B\\f\\r]*([^\"'][^ \\t\\n\\x0B\\f\\r]*|\"[^\"]*\"|'[^']*')[ \\t\\n\\x0B\\f\\r]*")

// split cuts a line into words and takes the quotes off. A blank line has none.
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
