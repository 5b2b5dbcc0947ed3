// Package queue has the queues of Curator and kazoo, on the same znodes, so that Go, Java and
// Python programs share a queue.
//
//	New, NewPriority, NewDelay, NewID   Curator's DistributedQueue and its variants; Locks sets its lockPath
//	NewSimple                           Curator's SimpleDistributedQueue, which is ZooKeeper's own recipe
//	NewKazoo, NewKazooLocking           kazoo's Queue and LockingQueue
//
// All have Take and TryTake, which remove an item, and with locks TakeLocked and Handle, which
// remove an item only when it is done. A queue may be used by any number of goroutines, and should
// be shared: concurrent calls share requests.
//
// When the session ends, the items that it has locked become available to other consumers. Items
// that were put stay.
//
// Invariants:
//   - Q1 An item that was put is in the queue once. An item whose Put failed is not, unless the
//     error's Unknown says that it may be.
//   - Q2 An item is taken once. When a take fails, nobody has taken an item by it, unless the
//     error's Unknown says that it may be.
//   - Q3 A locked item belongs to nobody else until Done, Return, or the end of Item.Context.
//     Afterwards, Done has removed it, or it can be taken again.
//   - Q4 One consumer takes items in the order of the queue: items of one producer as they were
//     put, smaller priorities first.
//   - Q5 No item is taken before its due time, by the consumer's wall clock.
//   - Q6 A change of the queue wakes at most three waiting consumers, however many wait.
//   - Q7 A caller that gave up leaves no znode behind, and no item is lost.
//
// docs/internals/recipes.md says why they hold, and what each operation costs.
package queue
