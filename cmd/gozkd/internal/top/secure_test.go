package top

import (
	"slices"
	"testing"

	"github.com/gozkd/gozkd/internal/probe"
)

// TestRoster_SecurePort checks at which port top --tls asks the members that it discovers.
func TestRoster_SecurePort(t *testing.T) {
	const lines = "serverId=1\nserver.1=a:2888:3888:participant;2181\nserver.2=b:2888:3888:participant;2181\nserver.3=c:2888:3888:participant;2182\n"
	for _, c := range []struct {
		given, conf string
		want        []string
	}{
		{"a:2281", "clientPort=2181\nsecureClientPort=2281\n" + lines, []string{"a:2281", "b:2281", "c:2281"}},
		{"a:2281", lines, []string{"a:2281", "b:2281", "c:2281"}},                       // of /zookeeper/config
		{"a:2181", "clientPort=2181\n" + lines, []string{"a:2181", "b:2181", "c:2182"}}, // unified
		{"a:2181", lines, []string{"a:2181", "b:2181", "c:2182"}},
	} {
		r := newRoster([]string{c.given}, map[string]string{c.given: c.given})
		r.secure = true
		r.learn(c.given, probe.ParseSettings(c.conf))
		var got []string
		for _, e := range r.entries() {
			got = append(got, e.Address)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s, %q: %q, want %q", c.given, c.conf, got, c.want)
		}
	}
}
