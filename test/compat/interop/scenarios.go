package interop

import (
	"encoding/hex"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/cases"
)

// Languages, named by their recipe library.
const (
	Curator = "Curator"
	Kazoo   = "kazoo"
	Go      = "Go"
)

// scenarios returns all scenarios without a death.
func (c *cast) scenarios() []cases.Case {
	list := []cases.Case{
		{Name: "mutex_wakes", Run: c.wakes(curatorNames, "lock")},
		{Name: "mutex_in_line", Run: c.inLine},
		{Name: "mutex_leaves_the_line", Run: c.leavesTheLine},
		{Name: "mutex_many", Run: c.mutexMany(curatorNames)},
		{Name: "mutex_revoked", Run: c.revokes},
		{Name: "write_lock_wakes", Run: c.wakes(curatorNames, "wlock")},
		{Name: "readers_and_writer", Run: c.readersAndWriter(curatorNames)},
		{Name: "downgrade", Run: c.downgrades},
		{Name: "read_write_many", Run: c.readWriteMany(curatorNames)},
		{Name: "semaphore_wakes", Run: c.semaphoreWakes(curatorNames)},
		{Name: "semaphore_many", Run: c.semaphoreMany(curatorNames)},
		{Name: "semaphore_maximum_grows", Run: c.maximumGrows},
		{Name: "latch_wakes", Run: c.elects(curatorNames, "latch")},
		{Name: "latch_many", Run: c.electsMany(curatorNames, "latch")},
		{Name: "selector_wakes", Run: c.elects(curatorNames, "select")},
		{Name: "selector_many", Run: c.electsMany(curatorNames, "select")},
		{Name: "queue_simple", Run: c.queue("simple")},
		{Name: "queue_distributed", Run: c.queue("queue")},
		{Name: "queue_priority", Run: c.queuePriority("priority")},
		{Name: "queue_delay", Run: c.queueDelay},
		{Name: "queue_id", Run: c.queue("id")},
		{Name: "queue_locked", Run: c.queue("locked")},
		{Name: "queue_returned", Run: c.returns("locked")},
		{Name: "barrier", Run: c.barrier},
		{Name: "double_barrier", Run: c.doubleBarrier},
		{Name: "count_int", Run: c.counts("int")},
		{Name: "count_long", Run: c.counts("long")},
		{Name: "value", Run: c.value},
		{Name: "group", Run: c.group},
		{Name: "persistent_node", Run: c.persistentNode},
		{Name: "discovery", Run: c.discovery},
	}
	if len(those(c.peers, Go, Curator)) == 2 {
		list = append(list, cases.Case{Name: "discovery_bytes", Run: c.instanceBytes})
	}
	switch {
	case len(those(c.peers, Curator)) == 0:
		list = append(list, c.kazooScenarios()...)
	case len(those(c.peers, Kazoo)) > 0:
		list = append(list, cases.Case{Name: "curator_needs_its_own_names", Run: c.ownNames})
	}
	return list
}

// kazooScenarios returns those that Go shares with an unconfigured kazoo, and Curator does not.
func (c *cast) kazooScenarios() []cases.Case {
	return []cases.Case{
		{Name: "kazoo_lock_wakes", Run: c.wakes(kazooNames, "lock")},
		{Name: "kazoo_lock_many", Run: c.mutexMany(kazooNames)},
		{Name: "kazoo_readers_and_writer", Run: c.readersAndWriter(kazooNames)},
		{Name: "kazoo_read_write_many", Run: c.readWriteMany(kazooNames)},
		{Name: "kazoo_semaphore_wakes", Run: c.semaphoreWakes(kazooNames)},
		{Name: "kazoo_semaphore_many", Run: c.semaphoreMany(kazooNames)},
		{Name: "kazoo_election_wakes", Run: c.elects(kazooNames, "select")},
		{Name: "kazoo_election_many", Run: c.electsMany(kazooNames, "select")},
		{Name: "kazoo_queue", Run: c.queue("kazoo")},
		{Name: "kazoo_queue_priority", Run: c.queuePriority("kazoo")},
		{Name: "kazoo_queue_locked", Run: c.queue("kazoo-locked")},
		{Name: "kazoo_queue_returned", Run: c.returns("kazoo-locked")},
		{Name: "kazoo_count", Run: c.counts("kazoo-int")},
		{Name: "kazoo_party", Run: c.party("deep")},
		{Name: "kazoo_shallow_party", Run: c.party("shallow")},
		{Name: "kazoo_partitioner", Run: c.partition},
		{Name: "kazoo_lease", Run: c.lease},
		{Name: "extra_patterns_wakes", Run: c.wakes(bothNames, "lock")},
		{Name: "extra_patterns_many", Run: c.mutexMany(bothNames)},
		{Name: "extra_patterns_readers_and_writer", Run: c.readersAndWriter(bothNames)},
		{Name: "extra_patterns_election", Run: c.electsMany(bothNames, "select")},
		{Name: "extra_patterns_read_write_many", Run: c.readWriteMany(bothNames)},
	}
}

func tohex(b []byte) string {
	if len(b) == 0 {
		return "-"
	}
	return hex.EncodeToString(b)
}

func unhex(s string) []byte {
	if s == "-" {
		return nil
	}
	return must.Get(hex.DecodeString(s))
}
