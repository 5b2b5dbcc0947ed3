package console

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Completion is the result of completing a line.
type Completion struct {
	Start int      // offset of the text to replace, in bytes
	Text  string   // replaces the text from Start to the cursor
	List  []string // candidates; empty: no completion. Several are listed if Text changes nothing.
}

const (
	keyTab    = '\t'
	keySearch = 0x12 // Ctrl-R
	// maxListed bounds the completions that are listed.
	maxListed = 200
)

// keyPressed returns the editor's callback for keys that the editor does not handle.
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
			_, _ = c.Write([]byte(columns(did.List, c.Width()))) // the next read reports the error
		}
		return line, pos, true
	}
}

func (c *Console) bell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.cfg.Out.WriteString("\a") // cosmetic
}

// columns arranges words in rows of at most width columns, sorted from top to bottom.
func columns(words []string, width int) string {
	more := len(words) - maxListed
	if more > 0 {
		words = words[:maxListed]
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

// search finds older lines of a history that contain a text.
type search struct {
	text, last string
	at         int // index of last in the history
}

// next returns the next older line that contains the typed text. If line is the previous result,
// unchanged, next continues the search with the same text.
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
