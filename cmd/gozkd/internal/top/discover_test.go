package top

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/clientflags"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/probe"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/zktest"
)

// Three gozkd servers with ZooKeeper's default whitelist, which contains only srvr: the given one
// reports the others.
func TestDiscover(t *testing.T) {
	ensemble := zktest.StartEnsemble(t, 3, zktest.WithConfig(func(_ int, c *server.Config) { c.Words = []string{"srvr"} }))
	var want []Entry
	for id := 1; id <= 3; id++ {
		want = append(want, Entry{Address: ensemble.Member(id).Address(), ID: uint64(id)})
	}
	const timeout = time.Hour // of each question; the watchdog bounds the test
	// The znode contains the members a moment after the start, so only the identity is checked
	// here.
	for _, named := range want {
		s, err := discoverer(timeout, new(clientflags.Security))(t.Context(), named.Address)
		if err != nil || s.ServerID != named.ID {
			t.Errorf("%s says %+v, %v", named.Address, s, err)
		}
	}

	given := []string{want[1].Address}
	asker := probe.Asker{Timeout: timeout}
	w := &watcher{roster: newRoster(given, aliases(t.Context(), given, timeout)), interval: 20 * time.Millisecond, ask: asker.Ask, discover: discoverer(timeout, new(clientflags.Security))}
	ctx, cancel := context.WithCancel(watchdog.Context(t, 20*time.Second))
	defer cancel()
	up := make(map[string]bool)
	var roster []Entry
	w.run(ctx, func(r Report) {
		roster = r.Roster
		if up[r.Sample.Address] = r.Sample.Err == nil; up[want[0].Address] && up[want[1].Address] && up[want[2].Address] {
			cancel()
		}
	})
	if !slices.Equal(roster, want) || len(up) != 3 {
		t.Errorf("roster %v, of which answered %v; want %v", roster, up, want)
	}
}

func TestDiscover_Nobody(t *testing.T) {
	if s, err := discoverer(time.Second, new(clientflags.Security))(t.Context(), "127.0.0.1:1"); err == nil {
		t.Errorf("%+v", s)
	}
}
