//go:build linux

package pty

import "testing"

func TestScreen(t *testing.T) {
	for _, c := range []struct{ name, drawn, want string }{
		{"lines", "a\r\nb\r\n", "a\nb"},
		{"over", "abc\rx", "xbc"},
		{"moves", "abc\x1b[2Dx\x1b[Cy", "axcy"},
		{"erases", "abcdef\x1b[3D\x1b[K", "abc"},
		{"wraps", "0123456789ab", "0123456789\nab"},
		{"wraps late", "0123456789\r\nab", "0123456789\nab"},
		{"up", "a\r\nb\x1b[A\rx", "x\nb"},
		{"runes", "zn\u00e4\x1b[Do", "zno"},
		{"unknown", "a\x1b[7Zb", "a<ESC [7Z>\nb"},
	} {
		s := NewScreen(10, 4)
		for i := range len(c.drawn) { // in the smallest pieces
			s.Draw([]byte{c.drawn[i]})
		}
		if got := s.String(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestTerminal(t *testing.T) {
	term := Open(t, 20, 5)
	program := term.Program()
	if !term.Cooked() {
		t.Error("a new terminal does not edit lines")
	}
	if _, err := program.WriteString("name? "); err != nil {
		t.Fatal(err)
	}
	term.Await("name?")
	term.Type("x\n")
	term.Await("name? x") // echoed by the system
	buf := make([]byte, 10)
	n, err := program.Read(buf)
	if err != nil || string(buf[:n]) != "x\n" {
		t.Errorf("read %q, %v", buf[:n], err)
	}
}
