package serverlist

import (
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/proto"
	"pgregory.net/rapid"
)

const three = "server.1=a:1:2;3,server.2=b:1:2;3,server.3=c:1:2;3"

func TestReconfigure(t *testing.T) {
	text := func(s string) *string { return &s }
	const bad, slip = proto.ErrBadArguments, proto.ErrMarshallingError
	for _, c := range []struct {
		name                 string
		joining, leaving, to *string
		want                 string // lines of the new set
		one                  bool   // a single voter is enough
		several              bool   // addresses
		code                 proto.ErrCode
	}{
		{name: "nothing", want: three},
		{name: "empty lists", joining: text(""), leaving: text(" , "), want: three},
		{name: "add", joining: text("server.4=d:1:2:observer;3"), want: three + ",server.4=d:1:2:observer;3"},
		{name: "add two", joining: text("server.5=e:1:2;3, server.4 = d:1:2;3 ,"), want: three + ",server.4=d:1:2;3,server.5=e:1:2;3"},
		{name: "remove", leaving: text("2"), want: "server.1=a:1:2;3,server.3=c:1:2;3"},
		{name: "remove nobody", leaving: text("9, -1"), want: three},
		{name: "change the role", joining: text("server.3=c:1:2:observer;3"), want: "server.1=a:1:2;3,server.2=b:1:2;3,server.3=c:1:2:observer;3"},
		{name: "leave and join", joining: text("server.3=x:1:2;3"), leaving: text("3"), want: "server.1=a:1:2;3,server.2=b:1:2;3,server.3=x:1:2;3"},
		{name: "take the address of one who leaves", joining: text("server.4=c:1:2;3"), leaving: text("3"), want: "server.1=a:1:2;3,server.2=b:1:2;3,server.4=c:1:2;3"},
		{name: "the last line of an id counts", joining: text("server.4=d:1:2;3,server.4=e:1:2;3"), want: three + ",server.4=e:1:2;3"},
		{name: "loopback may overlap", joining: text("server.4=localhost:1:2;3,server.5=127.0.0.1:1:2;3,server.6=[::1]:1:2;3"),
			want: three + ",server.4=localhost:1:2;3,server.5=127.0.0.1:1:2;3,server.6=[::1]:1:2;3"},
		{name: "full list", to: text("server.7=g:1:2;3,server.8=h:1:2;3"), want: "server.7=g:1:2;3,server.8=h:1:2;3"},
		{name: "full list with newlines, a version, and no client port", to: text("server.7=g:1:2\n\nserver.8=h:1:2\nversion=1f"), want: "server.7=g:1:2,server.8=h:1:2"},
		{name: "the full list wins", to: text("server.7=g:1:2;3,server.8=h:1:2;3"), joining: text("x"), leaving: text("x"), want: "server.7=g:1:2;3,server.8=h:1:2;3"},

		{name: "several addresses", several: true, joining: text("server.4=e:1:2|d:1:2;3"), want: three + ",server.4=d:1:2|e:1:2;3"},
		{name: "several addresses in a full list", several: true, to: text("server.7=g:1:2|i:1:2;3,server.8=h:1:2;3"), want: "server.7=g:1:2|i:1:2;3,server.8=h:1:2;3"},
		{name: "several addresses, not enabled", joining: text("server.4=e:1:2|d:1:2;3"), code: bad},
		{name: "several addresses in a full list, not enabled", to: text("server.7=g:1:2|i:1:2;3,server.8=h:1:2;3"), code: bad},
		{name: "one of several addresses is another's", several: true, joining: text("server.4=d:1:2|c:1:9;3"), code: bad},

		{name: "no line", joining: text("4"), code: bad},
		{name: "no client port", joining: text("server.4=d:1:2"), code: bad},
		{name: "secure client port", joining: text("server.4=d:1:2;3;4"), code: bad},
		{name: "secure client port in a full list", to: text("server.7=g:1:2;;4,server.8=h:1:2;3"), code: bad},
		{name: "no election port", joining: text("server.4=d:1;3"), code: bad},
		{name: "no port", joining: text("server.4=d"), code: bad},
		{name: "port is no number", joining: text("server.4=d:x:2;3"), code: bad},
		{name: "port is too large", joining: text("server.4=d:1:65536;3"), code: slip},
		{name: "client port is negative", joining: text("server.4=d:1:2;-3"), code: slip},
		{name: "unknown role", joining: text("server.4=d:1:2:boss;3"), code: bad},
		{name: "joining id is no number", joining: text("server.x=d:1:2;3"), code: slip},
		{name: "key without server", joining: text("4=d:1:2;3"), code: bad},
		{name: "no host", joining: text("server.4=:1:2;3"), code: bad},
		{name: "port beyond 32 bits", joining: text("server.4=d:1:99999999999;3"), code: bad},
		{name: "equal ports", joining: text("server.4=d:1:1;3"), code: bad},
		{name: "own addresses may overlap", joining: text("server.4=d:1:2;d:1"), want: three + ",server.4=d:1:2;d:1"},
		{name: "id is too large", joining: text("server.255=d:1:2;3"), code: bad},
		{name: "leaving id is no number", leaving: text("1,server.2"), code: slip},
		{name: "peer address of another", joining: text("server.4=A:1:9;8"), code: bad},
		{name: "client address is a peer address", joining: text("server.4=d:1:2;a:1"), code: bad},
		{name: "address of the one before", joining: text("server.4=d:1:2;3,server.5=d:2:4;5"), code: bad},
		{name: "one voter left", leaving: text("1,2"), code: bad},
		{name: "one voter left by role", joining: text("server.1=a:1:2:observer;3,server.2=b:1:2:observer;3"), code: bad},
		{name: "one voter is enough", leaving: text("1,2"), one: true, want: "server.3=c:1:2;3"},
		{name: "a full list of one is enough", to: text("server.1=a:1:2;3,server.2=b:1:2:observer;3"), one: true, want: "server.1=a:1:2;3,server.2=b:1:2:observer;3"},
		{name: "one voter is enough, and nobody left", leaving: text("1,2,3"), one: true, code: bad},
		{name: "nobody left", leaving: text("1,2,3"), code: bad},
		{name: "empty full list", to: text(""), code: bad},
		{name: "full list of one", to: text("server.1=a:1:2;3"), code: bad},
		{name: "full list of one with an observer", to: text("server.1=a:1:2;3,server.2=b:1:2:observer;3"), code: slip},
		{name: "full list of observers", to: text("server.1=a:1:2:observer;3"), code: slip},
		{name: "full list with an unknown key", to: text("server.1=a:1:2;3,server.2=b:1:2;3,tickTime=1"), code: bad},
		{name: "full list with groups", to: text("server.1=a:1:2;3,server.2=b:1:2;3,group.1=1:2"), code: bad},
		{name: "full list with overlap", to: text("server.1=a:1:2;3,server.2=a:1:2;3"), code: bad},
		{name: "full list with a bad version", to: text(three + ",version=x"), code: slip},
	} {
		cur := must(t, three)
		got, err := Reconfigure(cur, Request{Joining: c.joining, Leaving: c.leaving, NewMembers: c.to, OneVoter: c.one, MultiAddress: c.several})
		code, _ := Answer(err)
		want := Set(nil)
		if c.code == proto.OK {
			want = must(t, c.want)
		}
		if code != c.code || (err == nil) != (code == proto.OK) || !got.Equal(want) {
			t.Errorf("%s: %v %v, want %v %v", c.name, got, code, want, c.code)
		}
		if !cur.Equal(must(t, three)) {
			t.Errorf("%s: the current set was changed: %v", c.name, cur)
		}
	}
}

// TestReconfigure_Paths checks that a full list and joining plus leaving lead to the same set,
// whatever the order of the lines.
func TestReconfigure_Paths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cur, target := drawSet(t), drawSet(t)
		var joining, leaving []string
		for _, m := range cur {
			leaving = append(leaving, m.Key()[len("server."):])
		}
		for i := range target {
			m := &target[i]
			if m.ClientPort == 0 {
				m.ClientHost, m.ClientPort = anyAddress, 1
			}
			joining = append(joining, m.String())
		}
		j, l := strings.Join(joining, ","), strings.Join(leaving, ",")
		a, errA := Reconfigure(cur, Request{Joining: &j, Leaving: &l})
		slices.Reverse(joining)
		full := strings.Join(joining, "\n")
		b, errB := Reconfigure(cur, Request{NewMembers: &full})
		if (errA == nil) != (errB == nil) || !a.Equal(b) {
			t.Fatalf("%q and %q lead to %v %v and %v %v", j, full, a, errA, b, errB)
		}
		if errA == nil && !a.Equal(target) {
			t.Fatalf("got %v, want %v", a, target)
		}
	})
}
