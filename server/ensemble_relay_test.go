package server_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/server"
)

// An observer with RelayedObservers follows a follower, and another one if that one dies. Its
// clients notice nothing, and mntr shows it where ZooKeeper does.
func TestEnsemble_RelayedObservers(t *testing.T) {
	withNumbers(t, 4, func(t *testing.T, e *ensemble) {
		observer := e.members[0].id
		observing := fmt.Sprintf("zk_gozkd_peer_%d_observing", memberid.Number(observer))
		e.m(observer).line = strings.Replace(e.m(observer).line, "participant", "observer", 1)
		e.each(func(c *server.Config) { c.RelayedObservers, c.Words = true, []string{"*"} })
		e.startAll()
		relay := func() int {
			id, _ := strconv.Atoi(e.monitor(observer)["zk_observer_master_id"])
			return id
		}
		e.awaits("a relay", func() bool { return slices.Contains(e.followers(), relay()) && relay() != observer })
		leader, first := e.leader(), relay()
		e.awaits("the counts of the members", func() bool {
			return e.monitor(first)["zk_synced_observers"] == "1" && e.monitor(first)[observing] == "1" &&
				e.monitor(leader)["zk_synced_observers"] == "0"
		})
		e.check(leader, observer, "/before")
		e.m(first).kill()
		begun := time.Now()
		e.check(leader, observer, "/while-the-relay-is-dead")
		if took := time.Since(begun); took > time.Second {
			t.Errorf("a write and a sync took %v after the death of the relay", took)
		}
		e.awaits("another relay", func() bool { id := relay(); return id != first && id != leader && id != -1 })
		e.check(observer, leader, "/after")
	})
}
