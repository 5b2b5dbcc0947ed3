package shell

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/shell/console"
)

// completeTimeout is how long Tab waits for the server.
const completeTimeout = time.Second

// complete says what Tab makes of a line that is typed up to before: the names of commands, their flags, the words that some
// take, and paths, of which the server is asked.
func (s *Shell) complete(ctx context.Context, before string) console.Completion {
	if s.zk == nil {
		return completeLine(s.commands, nil, before)
	}
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	return completeLine(s.commands, func(path string) []string {
		names, _, err := s.zk.Children(ctx, path, false)
		if err != nil {
			return nil // no such znode, no right to look, no connection: there is nothing to offer
		}
		return slices.DeleteFunc(names, func(name string) bool { return string(quoteControls([]byte(name))) != name }) // see forEyes
	}, before)
}

// completeLine is complete without a server. children returns the names of a znode's children, none if there is no such
// znode; nil if there is no session.
func completeLine(commands []*command, children func(path string) []string, before string) console.Completion {
	w := lastWord(before)
	if len(w.before) == 0 {
		return w.completeOf(commandNames(commands))
	}
	i := slices.IndexFunc(commands, func(c *command) bool { return c.name == w.before[0] })
	if i < 0 {
		return console.Completion{}
	}
	c := commands[i]
	switch {
	case w.quote == 0 && strings.HasPrefix(w.text, "-"):
		return w.completeOf(flagNames(c))
	case c.fixed(w.before) != nil:
		return w.completeOf(c.fixed(w.before))
	case c.name == "help":
		return w.completeOf(commandNames(commands))
	case w.awaitsValue(c) || children == nil:
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

// fixed returns the words that may follow those before, where there are only some.
func (c *command) fixed(before []string) []string {
	last := before[len(before)-1]
	switch {
	case c.name == "addWatch" && last == "-m":
		return []string{"PERSISTENT", "PERSISTENT_RECURSIVE"}
	case c.name == "printwatches" && len(before) == 1:
		return []string{"off", "on"}
	}
	return nil
}

// awaitsValue reports whether the word is the value of the flag before it.
func (w partialWord) awaitsValue(c *command) bool {
	name, isFlag := strings.CutPrefix(w.before[len(w.before)-1], "-")
	return isFlag && slices.ContainsFunc(c.flags, func(f flag) bool { return f.name == name && f.value })
}

// completeOf completes the word to one of words.
func (w partialWord) completeOf(words []string) console.Completion {
	list := slices.DeleteFunc(slices.Clone(words), func(word string) bool { return !strings.HasPrefix(word, w.text) })
	text := commonPrefix(list)
	if len(list) == 1 {
		text += " "
	}
	return console.Completion{Start: w.start, Text: text, List: list}
}

// completePath completes the word to the path of a znode. One that has children is followed by a slash, another by a blank.
func (w partialWord) completePath(children func(path string) []string) console.Completion {
	slash := strings.LastIndexByte(w.text, '/')
	dir, begin := w.text[:slash], w.text[slash+1:]
	names := slices.DeleteFunc(slices.Clone(children(pathOf(dir))), func(name string) bool { return !strings.HasPrefix(name, begin) })
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
	text, ok := typed(path, w.quote, finished)
	if !ok {
		return console.Completion{}
	}
	if finished {
		text += " "
	}
	return console.Completion{Start: w.start, Text: text, List: names}
}

// pathOf returns the path of what stands before a slash.
func pathOf(dir string) string {
	if dir == "" {
		return "/"
	}
	return dir
}

// commonPrefix returns what all words begin with, in whole runes.
func commonPrefix(words []string) string {
	if len(words) == 0 {
		return ""
	}
	n := len(words[0])
	for _, w := range words[1:] {
		n = min(n, len(w))
		for i := range n {
			if w[i] != words[0][i] {
				n = i
				break
			}
		}
	}
	for n > 0 && n < len(words[0]) && !utf8.RuneStart(words[0][n]) {
		n--
	}
	return words[0][:n]
}
