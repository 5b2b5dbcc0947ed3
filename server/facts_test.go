package server_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/server"
)

// The facts of a server can be read in every state of its life.
func TestFacts_WheneverAsked(t *testing.T) {
	s, err := server.New(server.Config{
		Members: []string{"server.1=127.0.0.1:2888:3888;2181", "server.2=h2:2888:0:observer", "server.3=h3:2888:3888"}, InProcess: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(when string, reason error) {
		t.Helper()
		if err := s.NotServing(); !errors.Is(err, reason) {
			t.Errorf("%s: %v, want %v", when, err, reason)
		}
		if v := s.Facts().Monitor(); v != nil {
			t.Errorf("%s it monitors %v", when, v)
		}
		if e := s.Facts().Expiries(); e != nil {
			t.Errorf("%s sessions expire: %v", when, e)
		}
		conns, paths, watches := s.Facts().WatchCounts()
		if n := len(s.Facts().Connections()) + len(s.Facts().Watches()) + len(s.Facts().Ephemerals()) + conns + paths + watches; n != 0 {
			t.Errorf("%s there are %d connections, watches and ephemerals", when, n)
		}
		if zxid, _ := s.Facts().Digest(); zxid != 0 {
			t.Errorf("%s: zxid 0x%x", when, zxid)
		}
		s.Facts().ResetStats()
		s.Facts().ResetConnectionStats()
		if len(s.Facts().Settings()) < 12 || len(s.Facts().Environment()) != 18 {
			t.Errorf("%s: settings %v, environment %v", when, s.Facts().Settings(), s.Facts().Environment())
		}
		const want = "[{1 false 127.0.0.1:2888 127.0.0.1:3888 0.0.0.0:2181  } {2 true h2:2888    } {3 false h3:2888 h3:3888   }]"
		if got := fmt.Sprint(s.Facts().Members()); got != want {
			t.Errorf("%s: members %s, want %s", when, got, want)
		}
	}
	ask("before the start", server.ErrNotStarted)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	ask("after the end", server.ErrClosed)
}

func TestValue_Lines(t *testing.T) {
	for _, c := range []struct {
		value server.Value
		want  string
	}{
		{server.Value{Name: "znode_count", Is: int64(5)}, "znode_count=5 "},
		{server.Value{Name: "server_state", Is: "leader"}, "server_state=leader "},
		{server.Value{Name: "gozkd_peer_in_step", Peer: 12, Is: int64(1)}, "gozkd_peer_12_in_step=1 "},
		{
			server.Value{Name: "fsynctime", Is: server.Summary{Count: 2, Sum: 7, Min: 3, Max: 4, Avg: 3.5}},
			"avg_fsynctime=3.5 min_fsynctime=3 max_fsynctime=4 cnt_fsynctime=2 sum_fsynctime=7 ",
		},
	} {
		got := ""
		for key, is := range c.value.Lines() {
			got += fmt.Sprintf("%s=%v ", key, is)
		}
		if got != c.want {
			t.Errorf("%+v has lines %q, want %q", c.value, got, c.want)
		}
		for range c.value.Lines() { // a caller may stop early
			break
		}
	}
}

// Znodes with long names do not make the answers about the server long.
func TestMonitor_LongNames(t *testing.T) {
	s := start(t, server.Config{InProcess: true})
	c := as(t, s, server.Caller{})
	long, short := strings.Repeat("x", 100_000), strings.Repeat("y", 256)
	for _, name := range []string{long, short} {
		for _, path := range []string{"/" + name, "/zookeeper/quota/" + name, "/zookeeper/quota/" + name + "/zookeeper_limits", "/zookeeper/quota/" + name + "/zookeeper_stats"} {
			if _, _, err := c.Create(t.Context(), path, []byte("count=7,bytes=-1"), client.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := c.Get(t.Context(), "/"+name, false); err != nil {
			t.Fatal(err)
		}
	}
	found := make(map[string]bool)
	for _, v := range s.Facts().Monitor() {
		if strings.HasSuffix(v.Name, "_per_namespace") {
			found[v.Name+" "+v.Key] = true
		}
		if len(v.Key) > 256 {
			t.Errorf("%s has a key of %d bytes", v.Name, len(v.Key))
		}
	}
	for _, want := range []string{"read_per_namespace " + short, "read_per_namespace /others", "write_per_namespace " + short, "quota_count_limit_per_namespace " + short} {
		if !found[want] {
			t.Errorf("no value %.40s of %d bytes", want, len(want))
		}
	}
}
