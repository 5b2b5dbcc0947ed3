package server

import (
	"testing"

	"github.com/gozkd/gozkd/internal/serverlist"
)

// The client port moves when the members have another client address than the configured line.
func TestListenAddress(t *testing.T) {
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
		line := func(client string) serverlist.Member {
			set, _, err := serverlist.ParseConfig("server.1=m:1:2:participant" + client)
			if err != nil {
				t.Fatal(err)
			}
			m, _ := set.Get(1)
			return m
		}
		if got := listenAddress(line(c.configured), line(c.committed), c.listen); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
