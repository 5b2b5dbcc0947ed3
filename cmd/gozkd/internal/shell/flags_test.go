package shell

import (
	"fmt"
	"strings"
	"testing"
)

// TestParse checks the rules of commons-cli 1.5.0's DefaultParser. The results come from that
// parser.
func TestParse(t *testing.T) {
	s := newShell(nil, nil, settings{})
	for _, c := range []struct{ line, want string }{
		{"create /a b", "/a b"},
		{"create -s -e /a", "/a [s e]"},
		{"create /a -se b", "/a b [s e]"},
		{"create -st 5 /a", "/a [s t=5]"},
		{"create -st5 /a", "/a [s t=5]"},
		{"create -t=5 /a", "/a [t=5]"},
		{"create -t -5 /a", "/a [t=-5]"},
		{"create -t -x /a", "/a [t=-x]"},
		{"create -t - /a", "/a [t=-]"},
		{"create -t -se /a", "! MissingArgumentException: Missing argument for option: t"},
		{"create -t -e=1 /a", "! UnrecognizedOptionException: Unrecognized option: -e=1"},
		{"create -t --t=5", "! UnrecognizedOptionException: Unrecognized option: --t=5"},
		{"create -t --x /a", "/a [t=--x]"},
		{"create -t 5 -t 6 /a", "/a [t=5 t=6]"},
		{"create -- -s /a", "-s /a"},
		{"create /a - -s", "/a - [s]"},
		{"create /a -- -- -s", "/a -- -s"},
		{"create -s=x /a", "! UnrecognizedOptionException: Unrecognized option: -s=x"},
		{"create -st=5 /a", "! UnrecognizedOptionException: Unrecognized option: -st=5"},
		{"create -sx /a", "! UnrecognizedOptionException: Unrecognized option: -sx"},
		{"create /a -5", "! UnrecognizedOptionException: Unrecognized option: -5"},
		{"create --s /a", "! UnrecognizedOptionException: Unrecognized option: --s"},
		{"create /a -t", "! MissingArgumentException: Missing argument for option: t"},
		{"create -t -- /a", "! MissingArgumentException: Missing argument for option: t"},
		{"reconfig -add server.5=h:1:2;3", " [add=server.5=h:1:2;3]"},
		{"reconfig -add=5", "! UnrecognizedOptionException: Unrecognized option: -add=5"},
		{"reconfig -sv 5", " [s v=5]"},
		{"setquota -n 5 -n 6 /a", "/a [n=5 n=6]"},
		{"setquota -n 5 -b 6 /a", "! AlreadySelectedException: The option 'b' was specified but an option from this group has already been selected: 'n'"},
		{"setquota /a", "! MissingOptionException: Missing required option: [-n num soft quota, -b bytes soft quota, -N num hard quota, -B bytes hard quota]"},
		{"delquota /a", "/a"},
		{"redo -1", "-1"},
	} {
		words := strings.Fields(c.line)
		args, given, err := s.find(words[0]).parse(words[1:])
		got := strings.Join(args, " ")
		var flags []string
		for _, g := range given {
			f := g.name
			if g.value != "" {
				f += "=" + g.value
			}
			flags = append(flags, f)
		}
		if len(flags) > 0 {
			got += fmt.Sprintf(" %v", flags)
		}
		if err != nil {
			got = "! " + strings.TrimPrefix(err.Error(), "org.apache.commons.cli.")
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.line, got, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("create", "-s -e -t 5 /a -- -x")
	f.Add("setquota", "-n -b -N=5 -")
	f.Add("ls", "-é --- -=")
	s := newShell(nil, nil, settings{})
	f.Fuzz(func(t *testing.T, name, rest string) {
		c := s.find(name)
		if c == nil {
			c = s.find("create")
		}
		args, given, err := c.parse(split(rest))
		if err == nil && len(args)+2*len(given) > 2*len(rest) {
			t.Errorf("%q: more came out than went in: %q %v", rest, args, given)
		}
	})
}
