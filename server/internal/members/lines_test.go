package members

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/serverlist"
)

func TestAgreed(t *testing.T) {
	const (
		one   = "server.1=a:1:2:participant;2181\n"
		two   = "server.2=b:1:2:participant;2181\n"
		three = "server.3=c:1:2:participant;2181\n"
		four  = "server.4=d:1:2:participant;2181\n"
	)
	for _, tt := range []struct {
		name, current, own string
		reports            map[uint64]string
		want               string // empty: nothing changes
	}{
		{"nobody else has them", one + two + three, one + two + three + four, nil, ""},
		{"a majority has them", one + two + three, one + two + three + four,
			map[uint64]string{2: one + two + three + four}, one + two + three + four},
		{"others have them", one + two + three, one + two + three,
			map[uint64]string{2: one + two + three + four, 3: one + two + three + four}, ""},
		{"they disagree", one + two + three, one + two + three + four,
			map[uint64]string{2: one + two, 3: one + two + three}, ""},
		{"another role", one + two + three, one + two + three + four,
			map[uint64]string{2: one + two + three + "server.4=d:1:2:observer;2181"}, ""},
		{"a server leaves", one + two + three + four, one + two + three, map[uint64]string{2: one + two + three, 3: one + two + three}, one + two + three},
		{"a tie", one + two + three + four, one + two + three, map[uint64]string{2: one + two + three}, ""},
		{"each leaves the other out", one + two, one + three, map[uint64]string{2: two + three}, ""},
		{"own address is local", one + two + three, "server.1=local:1:2:participant;2181\n" + two + three, nil, ""},
		{"own address is local, and a server comes", one + two + three, "server.1=local:1:2:participant;2181\n" + two + three + four,
			map[uint64]string{2: one + "server.2=local:1:2:participant;2181\n" + three + four}, one + two + three + four},
		{"the others know this server by another name", "server.1=local:1:2:participant;2181\n" + two + three, "server.1=local:1:2:participant;2181\n" + two + three,
			map[uint64]string{2: one + two + three}, one + two + three},
		{"the others know this server by different names", one + two + three, "server.1=local:1:2:participant;2181\n" + two + three,
			map[uint64]string{2: "server.1=x:1:2:participant;2181\n" + two + three, 3: "server.1=y:1:2:participant;2181\n" + two + three},
			"server.1=x:1:2:participant;2181\n" + two + three},
		{"a server moves", one + two + three, one + two + "server.3=z:1:2:participant;2181",
			map[uint64]string{2: one + two + "server.3=z:1:2:participant;2181"}, one + two + "server.3=z:1:2:participant;2181"},
		{"a server moves with its client port", one + two + three, one + two + "server.3=z:1:2:participant;2200",
			map[uint64]string{2: one + two + "server.3=z:1:2:participant;2200"}, one + two + "server.3=z:1:2:participant;2200"},
		{"a client port changes", one + two + three, one + two + three,
			map[uint64]string{3: one + two + "server.3=c:1:2:participant;2200"}, one + two + "server.3=c:1:2:participant;2200"},
		{"a client port is said elsewhere", one + two + three, "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2",
			map[uint64]string{3: "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			reports := make(map[uint64]serverlist.Set)
			for id, text := range tt.reports {
				reports[id] = parseSet(t, text)
			}
			got, ok := Agreed(parseSet(t, tt.own), parseSet(t, tt.current), 1, reports)
			switch {
			case ok != (tt.want != ""):
				t.Errorf("changed: %v, to %v", ok, got)
			case ok && !got.Equal(parseSet(t, tt.want)):
				t.Errorf("got %v, want %v", got, parseSet(t, tt.want))
			}
		})
	}
}

func TestReconfigCommand(t *testing.T) {
	current := parseSet(t, "server.1=a:1:2;2181\nserver.2=b:1:2;2181\nserver.3=c:1:2;2181")
	wanted := parseSet(t, "server.1=a:1:2;2181\nserver.3=z:1:2;2181\nserver.4=d:1:2:observer;2181")
	const want = "reconfig -remove 2 -add 'server.3=z:1:2:participant;0.0.0.0:2181,server.4=d:1:2:observer;0.0.0.0:2181'"
	if got := ReconfigCommand(wanted, current); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Servers that agree about each other come to rest, whoever leads and whoever is connected,
// whatever they say about themselves.
func TestAgreed_ComeToRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 5).Draw(t, "servers")
		view := make(map[uint64]serverlist.Set)
		for id := uint64(1); id <= uint64(n); id++ {
			var set serverlist.Set
			for other := uint64(1); other <= uint64(n); other++ {
				m := serverlist.Member{ID: other, Host: fmt.Sprintf("m%d", other), PeerPort: 1, ClientHost: "0.0.0.0", ClientPort: 2181}
				if other == id {
					m.Host = rapid.SampledFrom([]string{m.Host, "local"}).Draw(t, "own host")
					m.ClientPort = rapid.SampledFrom([]int{2181, 2200}).Draw(t, "own client port")
				}
				set = set.With(m)
			}
			view[id] = set
		}
		current := view[rapid.Uint64Range(1, uint64(n)).Draw(t, "founder")]
		// lead lets a leader look at the lines of those that are connected to it.
		lead := func(leader uint64, connected func() bool) (changed bool) {
			reports := make(map[uint64]serverlist.Set)
			for id := uint64(1); id <= uint64(n); id++ {
				if id != leader && Differ(view[id], current, id) && connected() {
					reports[id] = view[id]
				}
			}
			next, changed := Agreed(view[leader], current, leader, reports)
			if changed {
				current = next
			}
			return changed
		}
		some := func() bool { return rapid.Bool().Draw(t, "connected") }
		for range 40 {
			lead(rapid.Uint64Range(1, uint64(n)).Draw(t, "leader"), some)
		}
		for leader := uint64(1); leader <= uint64(n); leader++ {
			for lead(leader, func() bool { return true }) {
			}
		}
		settled := current
		for range 40 {
			if leader := rapid.Uint64Range(1, uint64(n)).Draw(t, "leader"); lead(leader, some) {
				t.Fatalf("led by %d, the members change again, from\n%v to\n%v", leader, settled, current)
			}
		}
	})
}

// Lines differ from the members if the servers, their roles or the addresses between members do. Of
// its own line a server compares the client address, if it has one.
func TestDiffer(t *testing.T) {
	const two = "\nserver.2=b:1:2:participant;2181"
	for _, tc := range []struct {
		lines string
		want  bool
	}{
		{"server.1=a:1:2:participant;2181" + two, false},
		{"server.1=local:3:4:participant;2181" + two, false},
		{"server.1=a:1:2:participant" + two, false},
		{"server.1=a:1:2:participant;2200" + two, true},
		{"server.1=a:1:2:participant;10.0.0.1:2181" + two, true},
		{"server.1=a:1:2:observer;2181" + two, true},
		{"server.1=a:1:2:participant;2181\nserver.2=b:1:2:participant;2200", false},
		{"server.1=a:1:2:participant;2181\nserver.2=b:1:2:participant", false},
		{"server.1=a:1:2:participant;2181\nserver.2=c:1:2:participant;2181", true},
		{"server.1=a:1:2:participant;2181\nserver.2=b:1:2:observer;2181", true},
		{"server.1=a:1:2:participant;2181\nserver.3=b:1:2:participant;2181", true},
		{"server.1=a:1:2:participant;2181", true},
		{"server.1=a:1:2:participant;2181" + two + "\nserver.3=c:1:2:participant;2181", true},
	} {
		if got := Differ(parseSet(t, tc.lines), parseSet(t, "server.1=a:1:2:participant;2181"+two), 1); got != tc.want {
			t.Errorf("%q differs: %v", tc.lines, got)
		}
	}
	if !Differ(parseSet(t, "server.1=a:1:2"+two), parseSet(t, "server.3=a:1:2"+two), 1) {
		t.Error("a server that is no member sees no difference")
	}
}

// The lines of voters count for a while after they have arrived.
func TestLines_Recent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Lines
		take := func(from uint64, text string) {
			if err := l.Take(from, text); err != nil {
				t.Error(err)
			}
		}
		expect := func(want ...uint64) {
			t.Helper()
			if got := slices.Sorted(maps.Keys(l.Recent([]uint64{1, 2, 3}, 10*time.Second))); !slices.Equal(got, want) {
				t.Errorf("the lines of %v are recent, want %v", got, want)
			}
		}
		expect()
		take(2, "server.1=a:1:2")
		take(4, "server.1=a:1:2")
		time.Sleep(5 * time.Second)
		take(3, "server.1=b:1:2")
		if err := l.Take(3, "no lines"); err == nil {
			t.Error("no lines are taken")
		}
		time.Sleep(5 * time.Second)
		expect(2, 3)
		time.Sleep(time.Nanosecond)
		expect(3)
		take(2, "server.2=c:1:2")
		got := l.Recent([]uint64{2, 3}, 10*time.Second)
		if OneLine(got[2]) != "server.2=c:1:2:participant" || OneLine(got[3]) != "server.1=b:1:2:participant" {
			t.Errorf("%v", got)
		}
	})
	set := parseSet(t, "server.1=a:1:2\nserver.2=b:1:2\nversion=7")
	if got := Text(set); got != "server.1=a:1:2:participant\nserver.2=b:1:2:participant" {
		t.Errorf("%q", got)
	}
	if got := OneLine(set); got != "server.1=a:1:2:participant server.2=b:1:2:participant" {
		t.Errorf("%q", got)
	}
	for _, tc := range []struct{ wanted, want string }{
		{"server.1=a:1:2\nserver.2=b:1:2", "reconfig"}, {"server.1=a:1:2", "reconfig -remove 2"},
		{"server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2", "reconfig -add 'server.3=c:1:2:participant'"},
		{"server.1=a:1:2\nserver.2=b:1:2:observer", "reconfig -add 'server.2=b:1:2:observer'"},
		{"server.1=a:1:2;2181\nserver.2=b:1:2", "reconfig"},
	} {
		if got := ReconfigCommand(parseSet(t, tc.wanted), set); got != tc.want {
			t.Errorf("%q: %s, want %s", tc.wanted, got, tc.want)
		}
	}
}
