package shell

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestQuoteControls(t *testing.T) {
	for in, want := range map[string]string{
		"":                          "",
		"a\tb\nc\r\nmüll 你好":        "a\tb\nc\r\nmüll 你好",
		"\x1b[31mred\x07":           `\u001b[31mred\u0007`,
		"\u009b31m\x7f":             `\u009b31m\u007f`,
		"\x9b31m\xff":               `\x9b31m\xff`,
		"over\rwritten\r":           `over\u000dwritten\u000d`,
		"user\u202Egnp.exe":         `user\u202egnp.exe`,
		"\x1b]0;title\x07 and more": `\u001b]0;title\u0007 and more`,
	} {
		var b bytes.Buffer
		if n, err := (controlQuoter{&b}).Write([]byte(in)); n != len(in) || err != nil || b.String() != want {
			t.Errorf("%q: %q, %d, %v; want %q", in, b.String(), n, err, want)
		}
	}
}

// Quoted output needs no more quoting, and JSON stays valid with the same value.
func FuzzQuoteControls(f *testing.F) {
	f.Add("\x1b[2J\u009b\x9b\u202e\r\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		got := string(quoteControls([]byte(text)))
		if !utf8.ValidString(got) || strings.ContainsFunc(strings.NewReplacer("\n", "", "\t", "", "\r\n", "").Replace(got), unicode.IsControl) {
			t.Errorf("%q: %q", text, got)
		}
		line, err := marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		var before, after string
		if err := json.Unmarshal(line, &before); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(quoteControls(line), &after); err != nil || before != after {
			t.Errorf("%s: %q, %v", line, after, err)
		}
	})
}
