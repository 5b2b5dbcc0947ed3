package config

import (
	"slices"
	"strings"
	"testing"
)

func TestReadProperties(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []property
	}{
		{"separators", "a=1\nb:2\nc 3\nd\t=\t4\ne\nf=\n", []property{{"a", "1", 1}, {"b", "2", 2}, {"c", "3", 3}, {"d", "4", 4}, {"e", "", 5}, {"f", "", 6}}},
		{"only the first separator counts", "server.1=h:1:2;3\nx==y\n", []property{{"server.1", "h:1:2;3", 1}, {"x", "=y", 2}}},
		{"comments and blank lines", "# a=1\n  ! b=2\n\n \t\nc=3", []property{{"c", "3", 5}}},
		{"a comment is not continued", "# a \\\nb=2", []property{{"b", "2", 2}}},
		{"a # within a value", "a=1 # one", []property{{"a", "1 # one", 1}}},
		{"continuation", "a=1,\\\n   2,\\\n\t3\nb=4", []property{{"a", "1,2,3", 1}, {"b", "4", 4}}},
		{"continuation of a key", "ab\\\n  cd=1", []property{{"abcd", "1", 1}}},
		{"continuation to a #", "a=1\\\n#2\n\\\n#b=3", []property{{"a", "1#2", 1}, {"#b", "3", 3}}},
		{"even backslashes end the line", "a=C:\\\\\nb=2", []property{{"a", `C:\`, 1}, {"b", "2", 2}}},
		{"continuation at the end", "a=1\\", []property{{"a", "1", 1}}},
		{"line ends of Windows and of old Macs", "a=1\\\r\n  2\r\nb=3\rc=4", []property{{"a", "12", 1}, {"b", "3", 3}, {"c", "4", 4}}},
		{"escapes", `a\ b\:\=c=\t1\u0041\q\\`, []property{{"a b:=c", "1Aq\\", 1}}},
		{"no expansion", "a=${HOME} ${a}", []property{{"a", "${HOME} ${a}", 1}}},
		{"repeated keys stay", "a=1\na=2", []property{{"a", "1", 1}, {"a", "2", 2}}},
		{"trimmed", "a = 1 \u00a0 \t", []property{{"a", "1 \u00a0", 1}}},
		{"byte order mark, UTF-8", "\ufeffdataDir=/données", []property{{"dataDir", "/données", 1}}},
		{"empty", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, problems := readProperties("zoo.cfg", []byte(c.text))
			if !slices.Equal(got, c.want) || len(problems) > 0 {
				t.Errorf("%q\n got %v %v\nwant %v", c.text, got, problems, c.want)
			}
		})
	}
}

func TestReadProperties_Problems(t *testing.T) {
	props, problems := readProperties("zoo.cfg", []byte("a=1\n=2\nb=\\u12\n:3\nc=\xff\n# \xff\nd=%d\\uzzzz\ne=5"))
	want := []string{
		"zoo.cfg:2: has a value without a key",
		"zoo.cfg:3: cannot be read: invalid unicode literal",
		"zoo.cfg:4: has a value without a key",
		`zoo.cfg:5: is not UTF-8: save the file as UTF-8, or write the character as \uXXXX`,
		"zoo.cfg:7: cannot be read: invalid unicode literal",
	}
	var got []string
	for _, p := range problems {
		got = append(got, p.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("problems:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if !slices.Equal(props, []property{{"a", "1", 1}, {"e", "5", 8}}) {
		t.Errorf("properties: %v", props)
	}
}

// FuzzReadProperties: no panic, no leaked goroutine, lines in order, and no line lost.
func FuzzReadProperties(f *testing.F) {
	for _, s := range []string{"a=1\nb:2\n", "=\n", "a\\\n\\\n=\\u0041", "#c\\\n!d\r\n\\", "\xff", "a=\\u00", "\\\n=1"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		props, problems := readProperties("f", data)
		lines := len(logicalLines(strings.TrimPrefix(string(data), "\ufeff")))
		if len(props)+len(problems) != lines {
			t.Errorf("%d lines became %d properties and %d problems", lines, len(props), len(problems))
		}
		last := 0
		for _, p := range props {
			if p.line <= last {
				t.Errorf("line %d after line %d", p.line, last)
			}
			last = p.line
		}
	})
}
