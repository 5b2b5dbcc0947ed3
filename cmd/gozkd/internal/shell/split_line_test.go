package shell

import (
	"slices"
	"testing"
)

// The results come from zkCli.sh, except for lines without a word, which it reports as an unknown
// command or treats as a repetition.
func TestSplit(t *testing.T) {
	for _, c := range []struct {
		line string
		want []string
	}{
		{"get /a", []string{"get", "/a"}},
		{"  get\t/a  ", []string{"get", "/a"}},
		{`set /a "two words"`, []string{"set", "/a", "two words"}},
		{`set /a 'it is "so"'`, []string{"set", "/a", `it is "so"`}},
		{`set /a ""`, []string{"set", "/a", ""}},
		{`set /a b"c d"`, []string{"set", "/a", `b"c`, `d"`}},
		{`set /a "b"c`, []string{"set", "/a", "b", "c"}},
		{`set /a it's`, []string{"set", "/a", "it's"}},
		{`set /a "open`, []string{"set", "/a", "open"}},
		{`set /a 'open it`, []string{"set", "/a", "open", "it"}},
		{`set /a \"`, []string{"set", "/a", `\"`}},
		{`set /a {"json":"x y"}`, []string{"set", "/a", `{"json":"x`, `y"}`}},
		{"", nil},
		{"   ", nil},
		{`"`, nil},
	} {
		if got := split(c.line); !slices.Equal(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.line, got, c.want)
		}
	}
}
