package console

import (
	"errors"
	"strings"
	"testing"
)

func TestKeys(t *testing.T) {
	for _, c := range []struct{ name, typed, want string }{
		{"letters", "get /ä", "get /ä"},
		{"a line", "ls /\r", "ls /\r|"},
		{"lines", "a\rb\nc\r\nd", "a\r|b\r|c\r|d"},
		{"interrupt", "abc\x03d", "abc\x05 interrupted|d"},
		{"home and end", "\x1b[1~\x1b[4~\x1bOH\x1bOF\x1b[7~\x1b[8~", "\x1b[H\x1b[F\x1b[H\x1b[F\x1b[H\x1b[F"},
		{"words", "\x1b[1;5D\x1b[1;5C\x1bb\x1bf\x1b\x7f", "\x1b[1;3D\x1b[1;3C\x1b[1;3D\x1b[1;3C\x17"},
		{"no meaning", "a\x1b[15~\x1b[5;2~b\x1bxc", "abxc"},
		{"arrows", "\x1b[A\x1bOB", "\x1b[A\x1b[B"},
		{"half a sequence", "a\x1b[1;", "a"},
		{"paste", "\x1b[200~a\tb\x03\x1b[Ac\x1b[201~\t", "\x1b[200~a bc\x1b[201~\t"},
		{"paste of lines", "\x1b[200~a\rb\x1b[201~c", "\x1b[200~a\r|\x1b[200~b\x1b[201~c"},
	} {
		if got := takeAll(t, []byte(c.typed), 100); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		// The same in single bytes, where CR LF counts as two lines.
		if c.name == "lines" {
			continue
		}
		if got := takeAll(t, []byte(c.typed), 1); got != c.want {
			t.Errorf("%s, byte by byte: %q, want %q", c.name, got, c.want)
		}
	}
}

// takeAll writes | at the end of each line.
func takeAll(t *testing.T, typed []byte, piece int) string {
	t.Helper()
	var k keys
	var b strings.Builder
	take := func() {
		for p := make([]byte, 7); ; {
			n, err := k.take(p)
			b.Write(p[:n])
			switch {
			case errors.Is(err, ErrInterrupted):
				b.WriteString(" interrupted|")
			case err != nil:
				t.Fatal(err)
			case n == 0:
				return
			case p[n-1] == '\r':
				b.WriteByte('|')
			}
		}
	}
	for len(typed) > 0 {
		n := min(piece, len(typed))
		k.add(typed[:n])
		typed = typed[n:]
		take()
	}
	return b.String()
}

func FuzzKeys(f *testing.F) {
	f.Add([]byte("ls /\r\x1b[200~a\rb\x1b[201~\x03\x1b[1;5D"))
	f.Fuzz(func(t *testing.T, typed []byte) {
		out := takeAll(t, typed, 3)
		if strings.Count(out, "\x1b") != strings.Count(out, "\x1b[") {
			t.Errorf("%q became %q: more than keys, text, and sequences that the editor knows", typed, out)
		}
	})
}
