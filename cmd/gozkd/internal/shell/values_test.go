package shell

import (
	"strings"
	"testing"
)

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
