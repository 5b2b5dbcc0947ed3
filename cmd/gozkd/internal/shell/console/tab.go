package console

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Completion is what Tab does to a line.
type Completion struct {
	Start int      // where the text to replace begins, in bytes
	Text  string   // replaces what is from Start up to the cursor
	List  []string // what it could become: none, and Text counts for nothing; several are shown when Text changes nothing
}

const (
	keyTab    = '\t'
	keySearch = 0x12 // Ctrl-R
	// listMost bounds a list of completions: more than a screen is of no use.
	listMost = 200
)

// keyPressed returns what the editor asks about keys that it has no use for.
func (c *Console) keyPressed(ctx context.Context) func(line string, pos int, key rune) (string, int, bool) {
	var found search
	return func(line string, pos int, key rune) (string, int, bool) {
		switch {
		case key == keySearch:
			entry, ok := found.next(c.cfg.History, line)
			if !ok {
				c.bell()
				return line, pos, true
			}
			return entry, len(entry), true
		case key != keyTab:
			return "", 0, false
		case c.cfg.Complete == nil:
			return line, pos, true
		}
		did := c.cfg.Complete(ctx, line[:pos])
		switch {
		case len(did.List) == 0:
			c.bell()
		case did.Text != line[did.Start:pos]:
			return line[:did.Start] + did.Text + line[pos:], did.Start + len(did.Text), true
		case len(did.List) > 1:
			_, _ = c.Write([]byte(columns(did.List, c.Width()))) // fails with the terminal, as the next read does
		}
		return line, pos, true
	}
}

func (c *Console) bell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.cfg.Out.WriteString("\a") // for the ear only
}

// columns lays words out in rows of at most width columns, in the order of reading down.
func columns(words []string, width int) string {
	more := len(words) - listMost
	if more > 0 {
		words = words[:listMost]
	}
	widest := 0
	for _, w := range words {
		widest = max(widest, utf8.RuneCountInString(w))
	}
	cols := max(1, (width-1)/(widest+2))
	rows := (len(words) + cols - 1) / cols
	var b strings.Builder
	for r := range rows {
		for i := r; i < len(words); i += rows {
			b.WriteString(words[i])
			if i+rows < len(words) {
				b.WriteString(strings.Repeat(" ", widest+2-utf8.RuneCountInString(words[i])))
			}
		}
		b.WriteByte('\n')
	}
	if more > 0 {
		b.WriteString(fmt.Sprintf("… and %d more\n", more))
	}
	return b.String()
}

// search walks back through the lines of a history that contain a text.
type search struct {
	text, last string
	at         int // of last, in the history
}

// next returns the next older line that contains what is typed. A line that next returned itself, unchanged, goes on with
// the text before.
func (s *search) next(h *History, line string) (string, bool) {
	if s.last == "" || line != s.last {
		s.text, s.at = line, -1
	}
	for i := s.at + 1; i < h.Len(); i++ {
		if entry := h.At(i); entry != line && strings.Contains(entry, s.text) {
			s.last, s.at = entry, i
			return entry, true
		}
	}
	return "", false
}
