package shell

import (
	"slices"
	"strings"
	"testing"
)

func TestLastWord(t *testing.T) {
	for _, c := range []struct {
		line, before string // words with | between
		start        int
		quote, text  string
	}{
		{"", "", 0, "", ""},
		{"  ", "", 2, "", ""},
		{"ge", "", 0, "", "ge"},
		{"get ", "get", 4, "", ""},
		{"get /a", "get", 4, "", "/a"},
		{`get "/a b`, "get", 4, `"`, "/a b"},
		{`get '/a b"`, "get", 4, `'`, `/a b"`},
		{`get "/a b"`, "get", 4, `"`, "/a b"},
		{`get "/a b" -`, "get|/a b", 11, "", "-"},
		{`get "/a b"-`, "get|/a b", 10, "", "-"},
		{`set /a"b c`, `set|/a"b`, 9, "", "c"},
	} {
		w := lastWord(c.line)
		if strings.Join(w.before, "|") != c.before || w.start != c.start || w.text != c.text || string(w.quote) != c.quote && (w.quote != 0 || c.quote != "") {
			t.Errorf("%q: %+v", c.line, w)
		}
	}
}

// What is complete reads the same in both: nothing but the last word can differ.
func FuzzLastWord(f *testing.F) {
	f.Add(`get "/a b" 'c`)
	f.Add(`" "0`)
	f.Fuzz(func(t *testing.T, line string) {
		w := lastWord(line)
		if w.start > len(line) {
			t.Fatalf("%q: begins at %d", line, w.start)
		}
		words := split(line[:w.start])
		if len(w.before) == 1 && isBlank(w.before[0]) { // a whole line of nothing but a blank word is none
			w.before = nil
		}
		if !slices.Equal(words, w.before) {
			t.Errorf("%q: %q before the last word, but %q to split", line, w.before, words)
		}
	})
}

func TestQuoteWord(t *testing.T) {
	for _, c := range []struct {
		text, quote string
		finished    bool
		want        string // "" if it can't be typed
	}{
		{"/a", "", true, "/a"},
		{"/a b", "", true, `"/a b"`},
		{"/a b", "", false, `"/a b`},
		{"/a", `'`, true, `'/a'`},
		{`/a'b`, `'`, true, `"/a'b"`},
		{`/a"b`, "", true, `/a"b`},
		{`/a"b c`, "", true, `'/a"b c'`},
		{`/a"b 'c`, "", true, ""},
		{`/a"'b`, `"`, true, `/a"'b`},
	} {
		var quote byte
		if c.quote != "" {
			quote = c.quote[0]
		}
		got, ok := quoteWord(c.text, quote, c.finished)
		if !ok {
			got = ""
		}
		if got != c.want {
			t.Errorf("%s in %q: %s, want %s", c.text, c.quote, got, c.want)
		}
		if words := split(got); ok && c.finished && (len(words) != 1 || words[0] != c.text) {
			t.Errorf("%s is read as %q", got, words)
		}
	}
}

func TestCompleteLine(t *testing.T) {
	commands := []*command{
		{name: "addWatch", args: "[-m mode] path", flags: []flag{{"m", true, ""}}},
		{name: "get", args: "[-s] path", flags: []flag{{"s", false, ""}}},
		{name: "getAcl", args: "[-s] path", flags: []flag{{"s", false, ""}, {"v", true, ""}}},
		{name: "help", args: "[command]"},
		{name: "printwatches", args: "on|off"},
		{name: "quit"},
	}
	tree := map[string][]string{
		"/": {"zookeeper", "zoo", "app", "müll", "mül", "a b", "quo\"te"}, "/zookeeper": {"config", "quota"}, "/a b": {"c", "d e"},
	}
	children := func(path string) []string { return tree[path] }
	for _, c := range []struct{ line, want, list string }{
		{"q", "quit ", "quit"},
		{"  q", "  quit ", "quit"},
		{"ge", "get", "get getAcl"},
		{"get", "get", "get getAcl"},
		{"x", "", ""},
		{"x /", "", ""},
		{"get /zookeeper/c", "get /zookeeper/config ", "config"},
		{"get /zookeeper/", "get /zookeeper/", "config quota"},
		{"get /zook", "get /zookeeper/", "zookeeper"},
		{"get /z", "get /zoo", "zoo zookeeper"},
		{"get ", "get /", `a b app mül müll quo"te zoo zookeeper`},
		{"get /m", "get /mül", "mül müll"},
		{"get /ap", "get /app ", "app"},
		{"get /a\\", "", ""},
		{"get /nothing/x", "", ""},
		{"get z", "", ""},
		{`get "/a `, `get "/a b/`, "a b"},
		{`get "/a b/`, `get "/a b/`, "c d e"},
		{`get "/a b/d`, `get "/a b/d e" `, "d e"},
		{`get "/a b/d e"`, `get "/a b/d e" `, "d e"},
		{"get '/ap", "get '/app' ", "app"},
		{"get /q", `get /quo"te `, `quo"te`},
		{"get -", "get -s ", "-s"},
		{"getAcl -", "getAcl -", "-s -v"},
		{"getAcl -v /z", "", ""},
		{"getAcl -s /ap", "getAcl -s /app ", "app"},
		{"addWatch -m P", "addWatch -m PERSISTENT", "PERSISTENT PERSISTENT_RECURSIVE"},
		{"printwatches o", "printwatches o", "off on"},
		{"help g", "help get", "get getAcl"},
		{"quit ", "", ""},
	} {
		got := completeLine(commands, children, c.line)
		text := ""
		if len(got.List) > 0 {
			text = c.line[:got.Start] + got.Text
		}
		if text != c.want || strings.Join(got.List, " ") != c.list {
			t.Errorf("%q: %q of %q, want %q of %q", c.line, text, got.List, c.want, c.list)
		}
	}
	if got := completeLine(commands, nil, "get /"); len(got.List) > 0 {
		t.Errorf("paths without a session: %q", got.List)
	}
	if got := completeLine(commands, nil, "ge"); got.Text != "get" {
		t.Errorf("commands without a session: %q", got.Text)
	}
}
