package top

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/clientflags"
	"github.com/gozkd/gozkd/internal/probe"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/server/facts"
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

// Server lines without client ports, as the guide has them: what the asked member knows of the
// others counts, whichever member leads. What it does not know is called unknown.
func TestWatcher_WithoutClientPorts(t *testing.T) {
	started := zktest.StartEnsemble(t, 3, zktest.WithConfig(func(_ int, c *server.Config) {
		for i, line := range c.Members {
			c.Members[i], _, _ = strings.Cut(line, ";")
		}
		c.Words = []string{"srvr", "mntr", "conf"}
	}))
	for id := 1; id <= 3; id++ {
		given := []string{started.Member(id).Address()}
		asker := probe.Asker{Timeout: time.Hour} // the watchdog bounds the test
		ctx, cancel := context.WithCancel(watchdog.Context(t, 20*time.Second))
		w := &watcher{roster: newRoster(given, nil), interval: 20 * time.Millisecond, ask: func(ctx context.Context, address, word string) (string, error) {
			if address != given[0] { // the hosts of zktest's server lines do not exist
				return askUnknown(ctx, address, word)
			}
			return asker.Ask(ctx, address, word)
		}}
		var e ensembleJSON
		var text string
		var watched ensemble
		w.run(ctx, func(r Report) {
			watched.observe(r)
			if e, text = watched.json(), watched.text(); watched.totals().serve == 3 {
				cancel()
			}
		})
		if e.Leader == nil || len(e.Problems) > 0 || !strings.Contains(text, "  3 of 3 up  leader ") {
			t.Errorf("member %d: leader %v, problems %q\n%s", id, e.Leader, e.Problems, text)
		}
		leads := false
		for _, m := range e.Members {
			leads = leads || m.Role == facts.Leader
		}
		if !leads {
			t.Errorf("as member %d sees it, nobody leads\n%s", id, text)
		}
	}
}

func TestDiscover_Nobody(t *testing.T) {
	if s, err := discoverer(time.Second, new(clientflags.Security))(t.Context(), "127.0.0.1:1"); err == nil {
		t.Errorf("%+v", s)
	}
}
