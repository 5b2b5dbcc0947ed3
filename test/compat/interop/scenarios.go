package interop

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/gozkd/gozkd/test/compat/cases"
)

// The languages, as commands name them, by what has their recipes.
const (
	Curator = "Curator"
	Kazoo   = "kazoo"
	Go      = "Go"
)

// scenarios returns all in which nobody dies.
func (c *cast) scenarios() []cases.Case {
	return []cases.Case{
		{Name: "mutex_wakes", Run: c.mutexWakes},
		{Name: "mutex_in_line", Run: c.inLine},
		{Name: "mutex_leaves_the_line", Run: c.leavesTheLine},
		{Name: "mutex_many", Run: c.mutexMany},
		{Name: "mutex_revoked", Run: c.revokes},
		{Name: "write_lock_wakes", Run: c.writeLockWakes},
		{Name: "readers_and_writer", Run: c.readersAndWriter},
		{Name: "downgrade", Run: c.downgrades},
		{Name: "read_write_many", Run: c.readWriteMany},
		{Name: "semaphore_wakes", Run: c.semaphoreWakes},
		{Name: "semaphore_many", Run: c.semaphoreMany},
		{Name: "latch_wakes", Run: c.elects("latch")},
		{Name: "latch_many", Run: c.electsMany("latch")},
		{Name: "selector_wakes", Run: c.elects("select")},
		{Name: "selector_many", Run: c.electsMany("select")},
		{Name: "queue_simple", Run: c.queue("simple")},
		{Name: "queue_distributed", Run: c.queue("queue")},
		{Name: "queue_priority", Run: c.queuePriority},
		{Name: "queue_delay", Run: c.queueDelay},
		{Name: "queue_id", Run: c.queue("id")},
		{Name: "queue_locked", Run: c.queue("locked")},
		{Name: "barrier", Run: c.barrier},
		{Name: "double_barrier", Run: c.doubleBarrier},
		{Name: "count_int", Run: c.counts("int")},
		{Name: "count_long", Run: c.counts("long")},
		{Name: "value", Run: c.value},
		{Name: "group", Run: c.group},
		{Name: "persistent_node", Run: c.persistentNode},
		{Name: "discovery", Run: c.discovery},
	}
}

func tohex(b []byte) string {
	if len(b) == 0 {
		return "-"
	}
	return hex.EncodeToString(b)
}

func unhex(s string) ([]byte, error) {
	if s == "-" {
		return nil, nil
	}
	return hex.DecodeString(s)
}

// expectYes turns an answer into an error unless it is yes.
func expectYes(ctx context.Context, h *handle, verb string, args ...any) error {
	got, err := h.yes(ctx, verb, args...)
	if err == nil && !got {
		err = fmt.Errorf("%s: %s answered no", verb, h.lang())
	}
	return err
}
