package shell

import (
	"strings"
	"testing"
)

func TestQuota(t *testing.T) {
	for _, c := range []struct{ data, want string }{
		{"count=5,bytes=-1", "count=5,bytes=-1"},
		{"count=5,bytes=-1=;byteHardLimit=-1;countHardLimit=7", "count=5,bytes=-1=;byteHardLimit=-1;countHardLimit=7"},
		{"countHardLimit=7", "count=-1,bytes=-1=;countHardLimit=7"},
		{"count=;bytes=3", "count=-1,bytes=3"},
		{"", "count=-1,bytes=-1"},
	} {
		q, err := parseQuota([]byte(c.data))
		if err != nil || q.String() != c.want {
			t.Errorf("%q: got %q, %v, want %q", c.data, q, err, c.want)
		}
	}
	if q, err := parseQuota([]byte("count=many")); err == nil {
		t.Errorf("no error, but %v", q)
	}
}

func TestHexDump(t *testing.T) {
	if got := hexDump(nil); got != "" {
		t.Errorf("of nothing: %q", got)
	}
	lines := strings.Split(hexDump([]byte("0123456789abcdef\x00")), "\n")
	if want := "|00000010| 00                                              |.               |"; len(lines) != 6 || lines[4] != want {
		t.Errorf("got %q", lines)
	}
	for _, l := range lines[2:] {
		if len(l) != len(lines[2]) {
			t.Errorf("not as wide as the frame: %q", l)
		}
	}
}

func TestClientAddresses(t *testing.T) {
	const config = "server.1=a:2888:3888:participant;0.0.0.0:2181\nserver.2=b:2888:3888:observer\nserver.3=[::1]:1:2:participant;[::1]:2183\nversion=100000000"
	if got, want := clientAddresses(config), "100000000 0.0.0.0:2181,,[::1]:2183"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := clientAddresses(""); got != " " {
		t.Errorf("of a server alone: %q", got)
	}
}
