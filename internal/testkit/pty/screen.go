//go:build linux

package pty

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Screen is the screen of a terminal, with as much of a VT100 as line editors need. Each rune is
// one column wide. Colours are ignored. Unknown sequences are shown as <ESC …> so that a test
// notices them.
type Screen struct {
	cols, rows int
	cells      [][]rune // all lines so far, including those scrolled away
	x, y       int      // the cursor; x == cols: the next rune goes to the next line
	top        int      // line of cells in the window's first row
	pending    []byte   // an incomplete rune or sequence
	bells      int
}

// NewScreen returns an empty screen.
func NewScreen(cols, rows int) *Screen { return &Screen{cols: cols, rows: rows} }

// String returns the lines shown, without trailing blanks and trailing empty lines.
func (s *Screen) String() string {
	var lines []string
	for _, cells := range s.cells {
		lines = append(lines, strings.TrimRight(string(cells), " "))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// Draw shows the output of a program.
func (s *Screen) Draw(data []byte) {
	data = append(s.pending, data...)
	for len(data) > 0 {
		n := s.one(data)
		if n == 0 {
			break
		}
		data = data[n:]
	}
	s.pending = append([]byte(nil), data...)
}

// resize changes the size without wrapping lines again.
func (s *Screen) resize(cols, rows int) { s.cols, s.rows = cols, rows }

// one draws a rune or sequence and returns its length, 0 if it is incomplete.
func (s *Screen) one(data []byte) int {
	switch b := data[0]; {
	case b == '\r':
		s.x = 0
	case b == '\n':
		s.down()
	case b == '\b':
		s.x = max(s.x-1, 0)
	case b == '\a':
		s.bells++
	case b == 0x1b:
		return s.sequence(data)
	default:
		if !utf8.FullRune(data) {
			return 0
		}
		r, n := utf8.DecodeRune(data)
		s.put(r)
		return n
	}
	return 1
}

func (s *Screen) put(r rune) {
	if s.x >= s.cols {
		s.x = 0
		s.down()
	}
	line := s.line()
	for len(*line) <= s.x {
		*line = append(*line, ' ')
	}
	(*line)[s.x] = r
	s.x++
}

func (s *Screen) down() {
	s.y++
	s.top = max(s.top, s.y-s.rows+1)
}

func (s *Screen) line() *[]rune {
	for len(s.cells) <= s.y {
		s.cells = append(s.cells, nil)
	}
	return &s.cells[s.y]
}

// sequence executes ESC [ numbers letter.
func (s *Screen) sequence(data []byte) int {
	end := 2
	for end < len(data) && data[end] < '@' {
		end++
	}
	if end >= len(data) {
		return 0
	}
	words, letter := string(data[2:end]), data[end]
	n, err := strconv.Atoi(words)
	if err != nil {
		n = 1
	}
	s.x = min(s.x, s.cols-1)
	switch {
	case data[1] != '[':
		s.unknown(data[1 : end+1])
	case letter == 'A':
		s.y = max(s.y-n, s.top)
	case letter == 'B':
		s.y = min(s.y+n, s.top+s.rows-1)
	case letter == 'C':
		s.x = min(s.x+n, s.cols-1)
	case letter == 'D':
		s.x = max(s.x-n, 0)
	case letter == 'K' && words == "":
		line := s.line()
		*line = (*line)[:min(s.x, len(*line))]
	case letter == 'H' && words == "":
		s.x, s.y = 0, s.top
	case letter == 'J' && words == "2":
		s.cells = s.cells[:s.top]
	case letter == 'm', letter == 'h', letter == 'l': // colours; modes such as bracketed paste
	default:
		s.unknown(data[1 : end+1])
	}
	return end + 1
}

func (s *Screen) unknown(words []byte) {
	for _, r := range "<ESC " + string(words) + ">" {
		s.put(r)
	}
}
