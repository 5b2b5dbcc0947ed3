package top

import (
	"slices"
	"testing"

	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/probe"
	"github.com/gozkd/gozkd/server/facts"
)

const three = "server.1=h1:2888:3888:participant;0.0.0.0:2181\nserver.2=h2:2888:3888:participant;h2c:2182\nserver.3=10.0.0.3:2888:3888:observer"

func settingsOf(id string, lines string) probe.Settings {
	return probe.ParseSettings("clientPort=2181\nserverId=" + id + "\n" + lines)
}

func TestRoster(t *testing.T) {
	r := newRoster([]string{"lb:2181"}, nil)
	check := func(when string, want ...Entry) {
		t.Helper()
		if got := r.entries(); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	check("at first", Entry{"lb:2181", 0})
	r.learn("lb:2181", probe.Settings{})
	check("a standalone server", Entry{"lb:2181", 0})
	r.learn("lb:2181", settingsOf("2", three))
	// A wildcard host is replaced by that of the peer address; a line without a client port gets
	// that of the reporting server.
	check("learned", Entry{"h1:2181", 1}, Entry{"lb:2181", 2}, Entry{"10.0.0.3:2181", 3})
	r.learn("h1:2181", settingsOf("1", "server.1=h1:2888:3888;2181\nserver.4=h4:2888:3888;2181"))
	check("3 left, 4 came; what was given stays", Entry{"h1:2181", 1}, Entry{"lb:2181", 2}, Entry{"h4:2181", 4})
	r.learn("lb:2181", settingsOf("4", "server.1=h1:2888:3888;2181\nserver.4=h4:2888:3888;2181"))
	check("another server behind the name", Entry{"h1:2181", 1}, Entry{"lb:2181", 4})
}

// A given server that is down cannot report its number, but its address identifies it.
func TestRoster_OtherNames(t *testing.T) {
	r := newRoster([]string{"localhost:2181", "localhost:2182"}, map[string]string{
		"localhost:2181": "localhost:2181", "127.0.0.1:2181": "localhost:2181", "[::1]:2181": "localhost:2181",
		"localhost:2182": "localhost:2182", "127.0.0.1:2182": "localhost:2182",
	})
	r.learn("localhost:2181", settingsOf("1", "server.1=127.0.0.1:1:2;127.0.0.1:2181\nserver.2=127.0.0.1:3:4;127.0.0.1:2182\nserver.3=127.0.0.1:5:6;127.0.0.1:2183"))
	want := []Entry{{"localhost:2181", 1}, {"localhost:2182", 2}, {"127.0.0.1:2183", 3}}
	if got := r.entries(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Of two addresses of one server, the one that reported last has the number; the other is still
// watched.
func TestRoster_TwoNames(t *testing.T) {
	r := newRoster([]string{"a:2181", "b:2181"}, nil)
	r.learn("a:2181", settingsOf("1", "server.1=h1:2888:3888;2181"))
	r.learn("b:2181", settingsOf("1", "server.1=h1:2888:3888;2181"))
	if got := r.entries(); !slices.Equal(got, []Entry{{"b:2181", 1}, {"a:2181", 0}}) {
		t.Error(got)
	}
}

// Members on one machine whose lines have no client port, as in the operating guide's example: each
// number stands in the list once, and no address is taken for that of another member.
func TestRoster_NoClientPorts(t *testing.T) {
	const lines = "server.1=127.0.0.1:2881:3881\nserver.2=127.0.0.1:2882:3882\nserver.3=127.0.0.1:2883:3883"
	report := func(port, id string) probe.Settings {
		return probe.ParseSettings("clientPort=" + port + "\nserverId=" + id + "\n" + lines)
	}
	r := newRoster([]string{"127.0.0.1:2181"}, map[string]string{"127.0.0.1:2181": "127.0.0.1:2181"})
	r.learn("127.0.0.1:2181", report("2181", "2"))
	want := []Entry{{"server.1 127.0.0.1:?", 1}, {"127.0.0.1:2181", 2}, {"server.3 127.0.0.1:?", 3}}
	if got := r.entries(); !slices.Equal(got, want) {
		t.Errorf("one is named: %v, want %v", got, want)
	}
	r = newRoster([]string{"127.0.0.1:2181", "127.0.0.1:2182", "127.0.0.1:2183"}, nil)
	r.learn("127.0.0.1:2181", report("2181", "2"))
	want = []Entry{{"127.0.0.1:2181", 2}, {"127.0.0.1:2182", 0}, {"127.0.0.1:2183", 0}}
	if got := r.entries(); !slices.Equal(got, want) {
		t.Errorf("one has answered: %v, want %v", got, want)
	}
	r.learn("127.0.0.1:2182", report("2182", "3"))
	r.learn("127.0.0.1:2183", report("2183", "1"))
	want = []Entry{{"127.0.0.1:2183", 1}, {"127.0.0.1:2181", 2}, {"127.0.0.1:2182", 3}}
	if got := r.entries(); !slices.Equal(got, want) {
		t.Errorf("all have answered: %v, want %v", got, want)
	}
}

// Server 0 is the first, also while others have not told their numbers.
func TestRoster_FromZero(t *testing.T) {
	const lines = "server.0=h:2881:3881;2181\nserver.1=h:2882:3882;2182"
	r := newRoster([]string{"other:1", "h:2181"}, nil)
	r.learn("h:2181", probe.ParseSettings("clientPort=2181\nserverId=0\n"+lines))
	want := []Entry{{"h:2181", memberid.Zero}, {"h:2182", 1}, {"other:1", 0}}
	if got := r.entries(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for id, name := range map[uint64]string{memberid.Zero: "0", 1: "1", 0: absent} {
		if got := idText(&member{Entry: Entry{ID: id}}); got != name {
			t.Errorf("the id %d is shown as %q", id, got)
		}
	}
}

// A host that leads to another member, which reports its own number, is not taken for the member's.
func TestRoster_AnotherMemberAnswers(t *testing.T) {
	r := newRoster([]string{"127.0.0.1:2182"}, nil)
	lines := "clientPort=2182\nserverId=2\nserver.1=vm:2881:3881\nserver.2=127.0.0.1:2882:3882"
	r.learn("127.0.0.1:2182", probe.ParseSettings(lines))
	if got, want := r.entries(), []Entry{{"vm:2182", 1}, {"127.0.0.1:2182", 2}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	r.learn("vm:2182", probe.ParseSettings(lines))
	if got, want := r.entries(), []Entry{{"server.1 vm:?", 1}, {"127.0.0.1:2182", 2}}; !slices.Equal(got, want) {
		t.Errorf("after the answer: %v, want %v", got, want)
	}
}

// A member whose address is unknown is not asked, and does not count as down.
func TestWatcher_UnknownAddress(t *testing.T) {
	e := ensemble{}
	r := Report{Roster: []Entry{{"a:1", 1}, {"server.2 a:?", 2}}, Sample: Sample{Address: "a:1", State: probe.State{Mode: facts.Follower}}}
	e.observe(r)
	_, r.Sample.Err = askUnknown(t.Context(), "", "")
	r.Sample.Address = "server.2 a:?"
	e.observe(r)
	if role, _ := e.members[1].role(&e, theme{}); role != "unknown" {
		t.Errorf("role %q", role)
	}
	if got := e.problems(); len(got) != 1 || got[0] != "which member leads is unknown: name all with -server" {
		t.Errorf("%q", got)
	}
}
