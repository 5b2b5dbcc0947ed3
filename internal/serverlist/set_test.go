package serverlist

import (
	"fmt"
	"slices"
	"testing"

	"github.com/gozkd/gozkd/proto"
	"pgregory.net/rapid"
)

func TestParseConfig(t *testing.T) {
	s, version, err := ParseConfig("server.10=c:1:2:observer;3\n\n# comment\n server.2 = b:1:2;3 \nserver.1=a:1:2\nversion=1000000ab")
	if err != nil || version != 0x1000000ab {
		t.Fatalf("%v %v", version, err)
	}
	want := "server.1=a:1:2:participant\nserver.2=b:1:2:participant;0.0.0.0:3\nserver.10=c:1:2:observer;0.0.0.0:3\nversion=1000000ab"
	if got := s.Text(version); got != want {
		t.Errorf("text is %s, want %s", got, want)
	}
	if v, o := s.Voters(), s.Observers(); !slices.Equal(v, []uint64{1, 2}) || !slices.Equal(o, []uint64{10}) {
		t.Errorf("voters %v, observers %v", v, o)
	}
	if m, ok := s.Get(10); !ok || m.Host != "c" {
		t.Errorf("%v %t", m, ok)
	}
	if m, ok := s.Get(3); ok {
		t.Errorf("there is no server 3, but %v", m)
	}
}

func TestParseConfig_Errors(t *testing.T) {
	for text, want := range map[string]string{
		"server.1=a:1:2\nserver.1=b:1:2": "members: there are two lines for server.1: remove one of them",
		"server.1=a":                     "members: server.1=a: there is no peer port",
		"group.1=1:2":                    "members: group.1=1:2: the key of a server line is server.N",
		"nonsense":                       "members: nonsense=: the key of a server line is server.N",
		"version=xyz":                    `members: version "xyz" is not a hexadecimal number`,
	} {
		if _, _, err := ParseConfig(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if s, version, err := ParseConfig(""); len(s) != 0 || version != 0 || err != nil {
		t.Errorf("the empty text gives %v %v %v", s, version, err)
	}
}

func TestSet_With(t *testing.T) {
	s := must(t, "server.2=b:1:2,server.4=d:1:2")
	for line, want := range map[string]string{
		"server.1=a:1:2": "server.1=a:1:2,server.2=b:1:2,server.4=d:1:2",
		"server.2=x:1:2": "server.2=x:1:2,server.4=d:1:2",
		"server.3=c:1:2": "server.2=b:1:2,server.3=c:1:2,server.4=d:1:2",
		"server.5=e:1:2": "server.2=b:1:2,server.4=d:1:2,server.5=e:1:2",
	} {
		if got := s.With(must(t, line)[0]); !got.Equal(must(t, want)) {
			t.Errorf("with %s: %v, want %s", line, got, want)
		}
	}
	if !s.Equal(must(t, "server.2=b:1:2,server.4=d:1:2")) {
		t.Errorf("With changed its receiver: %v", s)
	}
}

func drawSet(t *rapid.T) (s Set) {
	for _, m := range rapid.SliceOfNDistinct(rapid.Custom(drawMember), 0, 7, func(m Member) uint64 { return m.ID }).Draw(t, "members") {
		s = s.With(m)
	}
	return s
}

func TestParseConfig_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, version := drawSet(t), proto.Zxid(rapid.Int64().Draw(t, "version"))
		got, v, err := ParseConfig(s.Text(version))
		if err != nil || v != version || !got.Equal(s) {
			t.Fatalf("%s reads back as %v %v %v", s.Text(version), got, v, err)
		}
	})
}

func FuzzParseConfig(f *testing.F) {
	f.Add("")
	f.Add("server.1=a:1:2:participant;0.0.0.0:2181\nserver.2=b:1:2\nversion=100000000")
	f.Add("version=ffffffffffffffff\nserver.254=[::]:1:2:observer")
	f.Fuzz(func(t *testing.T, text string) {
		s, version, err := ParseConfig(text)
		if err != nil {
			return
		}
		if !slices.IsSortedFunc(s, func(a, b Member) int { return int(a.ID) - int(b.ID) }) {
			t.Fatalf("not sorted: %v", s)
		}
		got, v, err := ParseConfig(s.Text(version))
		if err != nil || v != version || !got.Equal(s) {
			t.Fatalf("%q gives %q, which reads back as %v %v %v", text, s.Text(version), got, v, err)
		}
	})
}

func ExampleSet_Text() {
	s, _, _ := ParseConfig("server.2=b:2888:3888;2181\nserver.1=a:2888:3888;2181")
	fmt.Println(s.Text(0x100000000))
	// Output:
	// server.1=a:2888:3888:participant;0.0.0.0:2181
	// server.2=b:2888:3888:participant;0.0.0.0:2181
	// version=100000000
}
