package shell

import "strings"

// partialWord is the word at the end of a line that is being typed.
type partialWord struct {
	before []string // the words before it, without quotes
	start  int      // where it begins in the line, with its quote
	quote  byte     // that it begins with, or 0
	text   string   // without quotes
}

// lastWord finds the word that the cursor is at when all of line is before it. It goes by the rules of split, except that a
// quote need not be closed yet.
func lastWord(line string) partialWord {
	var w partialWord
	for i := 0; ; {
		for i < len(line) && isBlank(line[i:i+1]) {
			i++
		}
		w.start, w.quote = i, 0
		end := i
		if i < len(line) && (line[i] == '"' || line[i] == '\'') {
			w.quote = line[i]
			i++
			length := strings.IndexByte(line[i:], w.quote)
			if length < 0 {
				w.text = line[i:]
				return w
			}
			w.text = line[i : i+length]
			end = i + length + 1
		} else {
			for end < len(line) && !isBlank(line[end:end+1]) {
				end++
			}
			w.text = line[i:end]
		}
		if end == len(line) {
			return w
		}
		w.before = append(w.before, w.text)
		i = end
	}
}

// typed returns how text is written as one word of a line, and whether it can be: a line has no way to escape a quote.
// quote is the one that it begins with already, or 0; it is kept if it can be. A word that is not finished gets no closing
// quote.
func typed(text string, quote byte, finished bool) (string, bool) {
	needs := text == "" || strings.ContainsAny(text, " \t\n\v\f\r") || text[0] == '"' || text[0] == '\''
	quotes := []byte{'"', '\''}
	switch {
	case quote != 0:
		quotes = []byte{quote, quote ^ '"' ^ '\''}
	case !needs:
		return text, true
	}
	for _, q := range quotes {
		if strings.IndexByte(text, q) >= 0 {
			continue
		}
		word := string(q) + text
		if finished {
			word += string(q)
		}
		return word, true
	}
	return text, !needs
}
