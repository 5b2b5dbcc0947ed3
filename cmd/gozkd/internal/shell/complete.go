package shell

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/shell/console"
)

// completeTimeout bounds how long Tab waits for the server.
var completeTimeout = time.Second

// complete completes names of commands, flags, fixed values, and paths, which the server knows.
func (s *Shell) complete(ctx context.Context, before string) console.Completion {
	if s.zk == nil {
		return completeLine(s.commands, nil, before)
	}
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	return completeLine(s.commands, func(path string) []string {
		names, _, err := s.zk.Children(ctx, path, false)
		if err != nil {
			return nil // no such znode, no permission, or no connection
		}
		return slices.DeleteFunc(names, func(name string) bool { return string(quoteControls([]byte(name))) != name }) // see terminalSafe
	}, before)
}

// completeLine is complete without a server. children returns the names of a znode's children, or
// none if there is no such znode. children is nil if there is no session.
func completeLine(commands []*command, children func(path string) []string, before string) console.Completion {
	w := lastWord(before)
	if len(w.before) == 0 {
		return w.completeFrom(commandNames(commands))
	}
	i := slices.IndexFunc(commands, func(c *command) bool { return c.name == w.before[0] })
	if i < 0 {
		return console.Completion{}
	}
	c := commands[i]
	switch {
	case w.quote == 0 && strings.HasPrefix(w.text, "-"):
		return w.completeFrom(flagNames(c))
	case c.fixedValues(w.before) != nil:
		return w.completeFrom(c.fixedValues(w.before))
	case c.name == "help":
		return w.completeFrom(commandNames(commands))
	case w.isFlagValue(c) || children == nil:
		return console.Completion{}
	case w.text == "" && strings.Contains(c.args, "path"):
		w.text = "/"
	}
	if !strings.HasPrefix(w.text, "/") {
		return console.Completion{}
	}
	return w.completePath(children)
}

func commandNames(commands []*command) []string {
	var names []string
	for _, c := range commands {
		names = append(names, c.name)
	}
	return names
}

func flagNames(c *command) []string {
	var names []string
	for _, f := range c.flags {
		names = append(names, "-"+f.name)
	}
	slices.Sort(names)
	return names
}

// fixedValues returns the possible next words if only certain words are allowed, or nil.
func (c *command) fixedValues(before []string) []string {
	last := before[len(before)-1]
	switch {
	case c.name == "addWatch" && last == "-m":
		return []string{"PERSISTENT", "PERSISTENT_RECURSIVE"}
	case c.name == "printwatches" && len(before) == 1:
		return []string{"off", "on"}
	}
	return nil
}

// partialWord is the word at the end of a line that is being typed.
type partialWord struct {
	before []string // the words before the partial word, without quotes
	start  int      // offset in the line, including the quote
	quote  byte     // opening quote, or 0
	text   string   // without quotes
}

// typedWord is wordPattern, except that a quote need not be closed.
var typedWord = regexp.MustCompile("[ \\t\\n\\x0B\\f\\r]*(\"[^\"]*\"?|'[^']*'?|[^\"' \\t\\n\\x0B\\f\\r][^ \\t\\n\\x0B\\f\\r]*)")

// lastWord finds the last word of a line as split does, except that a quote need not be closed.
func lastWord(line string) partialWord {
	w := partialWord{start: len(line)}
	for _, at := range typedWord.FindAllStringSubmatchIndex(line, -1) {
		text, quote := line[at[2]:at[3]], byte(0)
		if text[0] == '"' || text[0] == '\'' {
			quote = text[0]
			text = strings.TrimSuffix(text[1:], string(quote))
		}
		if at[3] == len(line) {
			w.start, w.quote, w.text = at[2], quote, text
		} else {
			w.before = append(w.before, text)
		}
	}
	return w
}

func (w partialWord) isFlagValue(c *command) bool {
	name, isFlag := strings.CutPrefix(w.before[len(w.before)-1], "-")
	return isFlag && slices.ContainsFunc(c.flags, func(f flag) bool { return f.name == name && f.value })
}

func (w partialWord) completeFrom(words []string) console.Completion {
	list := slices.DeleteFunc(slices.Clone(words), func(word string) bool { return !strings.HasPrefix(word, w.text) })
	text := commonPrefix(list)
	if len(list) == 1 {
		text += " "
	}
	return console.Completion{Start: w.start, Text: text, List: list}
}

// completePath completes a path. A slash follows if the znode has children, otherwise a space.
func (w partialWord) completePath(children func(path string) []string) console.Completion {
	slash := strings.LastIndexByte(w.text, '/')
	dir, begin := w.text[:slash], w.text[slash+1:]
	parent := cmp.Or(dir, "/")
	names := slices.DeleteFunc(slices.Clone(children(parent)), func(name string) bool { return !strings.HasPrefix(name, begin) })
	if len(names) == 0 {
		return console.Completion{}
	}
	slices.Sort(names)
	path, finished := dir+"/"+commonPrefix(names), false
	if len(names) == 1 {
		if finished = len(children(path)) == 0; !finished {
			path += "/"
		}
	}
	text, ok := quoteWord(path, w.quote, finished)
	if !ok {
		return console.Completion{}
	}
	if finished {
		text += " "
	}
	return console.Completion{Start: w.start, Text: text, List: names}
}

// quoteWord returns text as a single word; ok is false if quotes, without an escape, forbid that.
// quote is the opening quote or 0, and is kept if possible. Only a finished word is closed.
func quoteWord(text string, quote byte, finished bool) (word string, ok bool) {
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

// commonPrefix returns the longest common prefix of all words, in whole runes.
func commonPrefix(words []string) string {
	if len(words) == 0 {
		return ""
	}
	prefix := words[0]
	for _, w := range words[1:] {
		for !strings.HasPrefix(w, prefix) {
			_, n := utf8.DecodeLastRuneInString(prefix)
			prefix = prefix[:len(prefix)-n]
		}
	}
	return prefix
}
