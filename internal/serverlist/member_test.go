package serverlist

import (
	"errors"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/proto"
	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		key, value string
		want       Member
		text       string // printed form
	}{
		{"server.1", "host:2888:3888:participant;0.0.0.0:2181",
			Member{ID: 1, Host: "host", PeerPort: 2888, ElectionPort: 3888, ClientHost: "0.0.0.0", ClientPort: 2181},
			"server.1=host:2888:3888:participant;0.0.0.0:2181"},
		{"server.2", "host:2888:3888;2181",
			Member{ID: 2, Host: "host", PeerPort: 2888, ElectionPort: 3888, ClientHost: "0.0.0.0", ClientPort: 2181},
			"server.2=host:2888:3888:participant;0.0.0.0:2181"},
		{"server.254", " host:2888:3888:Observer ",
			Member{ID: 254, Host: "host", PeerPort: 2888, ElectionPort: 3888, Role: Observer},
			"server.254=host:2888:3888:observer"},
		{"server.3", "10.0.0.1:2888", Member{ID: 3, Host: "10.0.0.1", PeerPort: 2888}, "server.3=10.0.0.1:2888:0:participant"},
		{"server.4", "[2001:DB8::1]:2888:3888;[::]:2181",
			Member{ID: 4, Host: "2001:db8::1", PeerPort: 2888, ElectionPort: 3888, ClientHost: "::", ClientPort: 2181},
			"server.4=[2001:db8:0:0:0:0:0:1]:2888:3888:participant;[0:0:0:0:0:0:0:0]:2181"},
		{"server.5", "[fe80::1%eth0]:1:2", Member{ID: 5, Host: "fe80::1%eth0", PeerPort: 1, ElectionPort: 2},
			"server.5=[fe80:0:0:0:0:0:0:1%eth0]:1:2:participant"},
		{"server.6", "[::ffff:10.0.0.1]:1:2", Member{ID: 6, Host: "10.0.0.1", PeerPort: 1, ElectionPort: 2}, "server.6=10.0.0.1:1:2:participant"},
		{"server.0", "a:1:2", Member{ID: 255, Host: "a", PeerPort: 1, ElectionPort: 2}, "server.0=a:1:2:participant"},
		{"server.8", "a:1:2; ", Member{ID: 8, Host: "a", PeerPort: 1, ElectionPort: 2}, "server.8=a:1:2:participant"},
		{"server.1", "a:1:2;2181;2281", Member{ID: 1, Host: "a", PeerPort: 1, ElectionPort: 2, ClientHost: "0.0.0.0", ClientPort: 2181, SecureHost: "0.0.0.0", SecurePort: 2281},
			"server.1=a:1:2:participant;0.0.0.0:2181;0.0.0.0:2281"},
		{"server.1", "a:1:2:observer;;[::1]:2281", Member{ID: 1, Host: "a", PeerPort: 1, ElectionPort: 2, Role: Observer, SecureHost: "::1", SecurePort: 2281},
			"server.1=a:1:2:observer;;[0:0:0:0:0:0:0:1]:2281"},
		{"server.7", "a:1:2;b:3;", Member{ID: 7, Host: "a", PeerPort: 1, ElectionPort: 2, ClientHost: "b", ClientPort: 3}, "server.7=a:1:2:participant;b:3"},
	} {
		m, err := Parse(c.key, c.value)
		if err != nil || m != c.want {
			t.Errorf("%s=%s: %+v %v, want %+v", c.key, c.value, m, err, c.want)
			continue
		}
		if m.String() != c.text {
			t.Errorf("%s=%s is printed as %s, want %s", c.key, c.value, m, c.text)
		}
		if again, err := Parse(c.key, strings.TrimPrefix(m.String(), c.key+"=")); again != m {
			t.Errorf("%s reads back as %+v %v", m, again, err)
		}
	}
}

func TestParse_Errors(t *testing.T) {
	for _, c := range []struct{ key, value, want string }{
		{"peer.1", "a:1:2", "the key of a server line is server.N"},
		{"server.x", "a:1:2", `the id "x" is not a number`},
		{"server.", "a:1:2", `the id "" is not a number`},
		{"server.-1", "a:1:2", "the id -1 is not between 0 and 254"},
		{"server.255", "a:1:2", "the id 255 is not between 0 and 254"},
		{"server.-1", "a:1:2", "the id -1 is not between 0 and 254"},
		{"server.1", "", "the host is neither a name"},
		{"server.1", ":1:2", "the host is neither a name"},
		{"server.1", "a b:1:2", "the host is neither a name"},
		{"server.1", "[::1:1:2", "the host is neither a name"},
		{"server.1", "[a]:1:2", "the host is neither a name"},
		{"server.1", "[::1]1:2", "the host is neither a name"},
		{"server.1", "a", "there is no peer port"},
		{"server.1", "[::1]", "there is no peer port"},
		{"server.1", "a;2181", "there is no peer port"},
		{"server.1", "a:x:2", `the peer port "x" is not between 1 and 65535`},
		{"server.1", "a:0:2", `the peer port "0" is not between 1 and 65535`},
		{"server.1", "a:65536:2", `the peer port "65536" is not between 1 and 65535`},
		{"server.1", "a:1:participant", `the election port "participant" is not between 0 and 65535`},
		{"server.1", "a:1:1", "the peer port and the election port are both 1"},
		{"server.1", "a:1:2:boss", `the role "boss" is neither participant nor observer`},
		{"server.1", "a:1:2:observer:3", "there is too much after the host"},
		{"server.1", "a:1:2||b:1:2", "the host is neither a name"},
		{"server.1", "|a:1:2", "the host is neither a name"},
		{"server.1", "a:1:2:observer|b:1:2:participant", "the addresses have different roles"},
		{"server.1", "a:1:2|b:1:1", "the peer port and the election port are both 1"},
		{"server.1", "a:1:2;:", "the client address is not [host:]port"},
		{"server.1", "a:1:2;x", `the client port "x" is not between 1 and 65535`},
		{"server.1", "a:1:2;0", `the client port "0" is not between 1 and 65535`},
		{"server.1", "a:1:2;b:1:2", "the client address is not [host:]port"},
		{"server.1", "a:1:2;2181;x", `the secure client port "x" is not between 1 and 65535`},
		{"server.1", "a:1:2;2181;b:1:2", "the secure client address is not [host:]port"},
		{"server.1", "a:1:2;2181;2281;3", `the secure client port "2281;3" is not between 1 and 65535`},
		{"server.1", "a:1:2; ;2281", `the client port "" is not between 1 and 65535`},
	} {
		_, err := Parse(c.key, c.value)
		var e *Error
		if !errors.As(err, &e) || !strings.HasPrefix(e.Problem, c.want) || e.Key != c.key || e.Value != c.value {
			t.Errorf("%s=%s: %v, want %s", c.key, c.value, err, c.want)
		}
		if err != nil && err.Error() != "members: "+c.key+"="+c.value+": "+e.Problem {
			t.Errorf("%v", err)
		}
	}
}

func TestMember_Addresses(t *testing.T) {
	m := must(t, "server.1=[::1]:1:2;3")[0]
	if m.PeerAddress() != "[::1]:1" || m.ClientAddress() != "0.0.0.0:3" {
		t.Errorf("%s %s", m.PeerAddress(), m.ClientAddress())
	}
	if m := must(t, "server.1=a:1:2")[0]; m.ClientAddress() != "" {
		t.Errorf("%s", m.ClientAddress())
	}
}

// Several addresses are printed as ZooKeeper prints them.
func TestMember_SeveralAddresses(t *testing.T) {
	for value, want := range map[string]string{
		"b:1:2|a:3:4:observer;5":                          "a:3:4|b:1:2:observer;0.0.0.0:5",
		"127.0.0.3:21:22|127.0.0.1:23:24|127.0.0.2:25:26": "127.0.0.1:23:24|127.0.0.2:25:26|127.0.0.3:21:22:participant",
		"a:1:2|a:1:2;5":                                   "a:1:2:participant;0.0.0.0:5",
		"a:1:2|;5":                                        "a:1:2:participant;0.0.0.0:5",
		"a:3:4|a:1:2":                                     "a:3:4|a:1:2:participant",
		"[::1]:1:2|b:1":                                   "[0:0:0:0:0:0:0:1]:1:2|b:1:0:participant",
	} {
		m, err := Parse("server.1", value)
		if err != nil || m.Value() != want {
			t.Errorf("%s is printed as %s, %v, want %s", value, m.Value(), err, want)
		}
		if again, err := Parse(m.Key(), m.Value()); err != nil || again != m {
			t.Errorf("%s reads back as %+v, %v", m, again, err)
		}
	}
	m := must(t, "server.1=b:1:2|[::1]:3:4")[0]
	if m.PeerAddress() != "[::1]:3|b:1" || m.ElectionAddress() != "[::1]:4|b:2" || strings.Join(m.PeerHosts(), " ") != "::1 b" {
		t.Errorf("%s, %s, %s", m.PeerAddress(), m.ElectionAddress(), m.PeerHosts())
	}
}

// must parses server lines separated by newlines or commas.
func must(t testing.TB, text string) Set {
	t.Helper()
	s, _, err := ParseConfig(strings.ReplaceAll(text, ",", "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func drawHost(t *rapid.T) string {
	return rapid.OneOf(rapid.StringMatching(`[a-z][a-z0-9.-]{0,8}`),
		rapid.SampledFrom([]string{"10.0.0.1", "::1", "2001:db8::5", "fe80::1%eth0", "0.0.0.0", "::"})).Draw(t, "host")
}

func drawMember(t *rapid.T) Member {
	m := Member{
		ID:           rapid.Uint64Range(1, memberid.Zero).Draw(t, "id"),
		Host:         drawHost(t),
		PeerPort:     rapid.IntRange(1, 65535).Draw(t, "peer port"),
		ElectionPort: rapid.IntRange(0, 65535).Draw(t, "election port"),
		Role:         rapid.SampledFrom([]Role{Participant, Observer}).Draw(t, "role"),
	}
	if m.ElectionPort == m.PeerPort {
		m.ElectionPort = 0
	}
	if rapid.Bool().Draw(t, "has client") {
		m.ClientHost, m.ClientPort = drawHost(t), rapid.IntRange(1, 65535).Draw(t, "client port")
	}
	if rapid.Bool().Draw(t, "several") {
		m.More = address{m.Host, m.PeerPort%65535 + 1, 0}.String()
	}
	return m
}

func TestParse_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMember(t)
		got, err := Parse(m.Key(), m.Value())
		if err != nil || got != m {
			t.Fatalf("%s reads back as %+v %v, want %+v", m, got, err, m)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, value := range []string{"host:2888:3888:participant;0.0.0.0:2181", "[::1]:1:2:observer;[::]:3", "a:1", "[fe80::1%e]:1:2;3;", "a|b", ";;", "[", "[]:"} {
		f.Add("server.1", value)
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		m, err := Parse(key, value)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.code == proto.OK {
				t.Fatalf("error %#v", err)
			}
			return
		}
		again, err := Parse(m.Key(), m.Value())
		if err != nil || again != m {
			t.Fatalf("%q=%q gives %+v, and %s gives %+v %v", key, value, m, m, again, err)
		}
	})
}

// The client port moves when the members have another client address than the configured line.
func TestMember_ListenAddress(t *testing.T) {
	for _, c := range []struct {
		configured string // client address of the line, "" if only clientPort is set
		listen     string
		committed  string
		want       string
	}{
		{";2181", ":2181", ";2181", ":2181"},
		{";2181", "10.0.0.1:2181", ";2181", "10.0.0.1:2181"}, // with clientPortAddress
		{";2181", ":2181", ";2191", ":2191"},
		{";2181", "10.0.0.1:2181", ";2191", "10.0.0.1:2191"},
		{";10.0.0.1:2181", "10.0.0.1:2181", ";2191", ":2191"},
		{";10.0.0.1:2181", "10.0.0.1:2181", ";2181", ":2181"},
		{";10.0.0.1:2181", "10.0.0.1:2181", ";10.0.0.2:2181", "10.0.0.2:2181"},
		{";2181", ":2181", ";a:2181", ":2181"}, // listens there
		{";2181", ":2181", ";a:2191", "a:2191"},
		{"", ":2181", ";a:2181", ":2181"},
		{"", "127.0.0.1:2181", ";2182", "127.0.0.1:2182"},
		{";2181", "[::1]:2181", ";[::2]:2181", "[::2]:2181"},
	} {
		line := func(client string) Member {
			m, err := Parse("server.1", "m:1:2:participant"+client)
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		if got := line(c.committed).ListenAddress(line(c.configured), c.listen); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
