package console

import "testing"

func TestColumns(t *testing.T) {
	for _, c := range []struct {
		words []string
		width int
		want  string
	}{
		{[]string{"a", "bb", "c"}, 80, "a   bb  c\n"},
		{[]string{"a", "bb", "c"}, 10, "a   c\nbb\n"},
		{[]string{"too-long-for-it", "b"}, 10, "too-long-for-it\nb\n"},
		{make([]string, maxListed+2), 2 * maxListed * 2, "… and 2 more\n"},
	} {
		got := columns(c.words, c.width)
		if c.words[0] == "" {
			got = got[len(got)-len(c.want):]
		}
		if got != c.want {
			t.Errorf("%q in %d columns:\n%s\nwant\n%s", c.words, c.width, got, c.want)
		}
	}
}

func TestSearch(t *testing.T) {
	h := new(History)
	for _, line := range []string{"get /a", "ls /", "get /b", "get /a"} {
		record(t, h, line)
	}
	var s search
	for _, c := range []struct{ line, want string }{
		{"get", "get /a"}, {"get /a", "get /b"}, {"get /b", "get /a"}, {"get /a", ""},
		{"l", "ls /"}, {"nothing", ""},
	} {
		if got, ok := s.next(h, c.line); got != c.want || ok != (c.want != "") {
			t.Errorf("behind %q: %q, %v; want %q", c.line, got, ok, c.want)
		}
	}
}
