package principal

import (
	"os"
	"strings"
	"testing"
)

const realm = "EX.TEST"

// refused are beginnings of rules that ZooKeeper starts with and that are refused here: they fail
// when they are applied, or mean something else in Go than in Java.
var refused = []string{
	"RULE:[1:$2]", "RULE:[1:$]", "RULE:[1:$1]s/x*/-/g", "RULE:[1:$1]s/a*+/b/", "RULE:[1:$1]s/(?i)A/b/",
	"RULE:[1:$1]s/(?=a)/b/", "RULE:[1:$1]s/[a-z&&[^l]]/b/", "RULE:[1:$1]s/\\bal/b/", "RULE:[1:$1]s/(a)\\1/b/",
	"RULE:[1:$1]s/a/$1/", "RULE:[1:$1]s/a/$/", "RULE:[1:$1]s/a/\\/", "RULE:[1:$1]s/[[:alpha:]]/b/",
}

// TestMapping_IDsAreZooKeepers compares with the answers of ZooKeeper's own classes, which
// go run ./test/compat/kerberos/names records.
func TestMapping_IDsAreZooKeepers(t *testing.T) {
	golden, err := os.ReadFile("testdata/names.golden")
	if err != nil {
		t.Fatal(err)
	}
	compared, refusedHere := 0, make(map[string]bool)
	for line := range strings.Lines(string(golden)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 6 {
			continue // the comment
		}
		rules, name, result, want := f[0], f[3], f[4], f[5]
		rs, err := ParseRules(rules, realm)
		if err != nil {
			if result != "bad rules" {
				refusedHere[rules] = true
			}
			continue
		}
		compared++
		if result == "bad rules" {
			t.Errorf("rules %q are bad for ZooKeeper, and taken here", rules)
			continue
		}
		n, err := Parse(name)
		if (err != nil) != (result == "bad name") {
			t.Errorf("%q: ZooKeeper says %q, and here it is %v", name, result, err)
		}
		if err != nil {
			continue
		}
		if n.String() != name {
			t.Errorf("%q became %q", name, n)
		}
		id, err := Mapping{Rules: rs, RemoveHost: f[1] == "true", RemoveRealm: f[2] == "true"}.ID(n)
		if (err == nil) != (result == "id") || id != want {
			t.Errorf("rules %q, remove host %s, remove realm %s, name %q: %q (%v), of ZooKeeper %q %s", rules, f[1], f[2], name, id, err, want, result)
		}
	}
	if compared < 1000 {
		t.Errorf("compared %d ids only", compared)
	}
	for _, rules := range refused {
		if !refusedHere[rules] {
			t.Errorf("rules %q are not refused, or not in the golden file", rules)
		}
		delete(refusedHere, rules)
	}
	for rules := range refusedHere {
		t.Errorf("ZooKeeper takes the rules %q", rules)
	}
}

func TestJoin_RefusesWhatCannotBeTold(t *testing.T) {
	for _, c := range []struct {
		components []string
		realm      string
		want       string
	}{
		{[]string{"alice"}, "EX.TEST", "alice@EX.TEST"},
		{[]string{"zookeeper", "h.ex.test"}, "EX.TEST", "zookeeper/h.ex.test@EX.TEST"},
		{[]string{"user one"}, "EX.TEST", "user one@EX.TEST"},
		{[]string{"ü"}, "EX.TEST", "ü@EX.TEST"},
		{[]string{"a/b"}, "EX.TEST", ""},
		{[]string{"a@EX.TEST"}, "EX.TEST", ""},
		{[]string{"a"}, "EX@TEST", ""},
		{[]string{`a\`}, "EX.TEST", ""},
		{[]string{"a", "b", "c"}, "EX.TEST", ""},
		{nil, "EX.TEST", ""},
		{[]string{"a"}, "", ""},
		{[]string{""}, "EX.TEST", ""},
		{[]string{"a", ""}, "EX.TEST", ""},
		{[]string{"a\n"}, "EX.TEST", ""},
		{[]string{"a\x00"}, "EX.TEST", ""},
		{[]string{"a\xff"}, "EX.TEST", ""},
		{[]string{"a\u2028"}, "EX.TEST", ""},
	} {
		n, err := Join(c.components, c.realm)
		if (err == nil) != (c.want != "") || err == nil && n.String() != c.want {
			t.Errorf("Join(%q, %q) = %q, %v, want %q", c.components, c.realm, n, err, c.want)
		}
	}
}

// FuzzMapping checks that no rule and no name causes a panic, and that a name that Join makes is
// parsed into the same parts.
func FuzzMapping(f *testing.F) {
	f.Add("DEFAULT", "zookeeper", "host", realm)
	f.Add(`RULE:[2:$1@$0](.*)s/(a)?b{1,2}/$1\$/gDEFAULT`, "a", "b", realm)
	f.Add(`RULE:[1:$1@$0]([^@]*.*)s/@.*//`, "a", "", realm)
	f.Fuzz(func(t *testing.T, rules, short, host, inRealm string) {
		components := []string{short}
		if host != "" {
			components = append(components, host)
		}
		n, err := Join(components, inRealm)
		if err != nil {
			return
		}
		again, err := Parse(n.String())
		if err != nil || again != n {
			t.Fatalf("%+v became %q, and that %+v (%v)", n, n, again, err)
		}
		rs, err := ParseRules(rules, realm)
		if err != nil {
			return
		}
		id, err := Mapping{Rules: rs}.ID(n)
		if err != nil {
			return
		}
		if parsed, err := Parse(id); err != nil || parsed.Realm != n.Realm || parsed.Host != n.Host {
			t.Fatalf("the id of %q is %q, in which the host or the realm is another (%v)", n, id, err)
		}
	})
}
