// Package queue has the queues of Curator and kazoo, on the same znodes, so that Go, Java and
// Python programs share a queue.
//
//	New, NewPriority, NewDelay          Curator's DistributedQueue and variants; Locks is its lockPath
//	NewSimple                           Curator's SimpleDistributedQueue, ZooKeeper's own recipe
//	NewKazoo, NewKazooLocking           kazoo's Queue and LockingQueue
//
// All have Take and TryTake, which remove an item at once, and with locks TakeLocked and Handle,
// which keep an item in the queue until the consumer is done with it. A queue may be used by any
// number of goroutines, and should be shared: concurrent calls share requests.
//
// When a session ends, the items that were locked in that session become available to other
// consumers. Items that were put stay.
//
// Invariants:
//   - Q1 An item that was put is in the queue once. An item whose Put failed is not in the queue,
//     unless the error's Unknown is set.
//   - Q2 An item is taken once. A take that failed has taken nothing, unless the error's Unknown is
//     set.
//   - Q3 A locked item belongs to nobody else until Done, Release, or the end of Item.Context.
//     Afterwards, either Done has removed the item, or the item can be taken again.
//   - Q4 A single consumer takes items in the order of the queue: items of one producer as they
//     were put, smaller priorities first.
//   - Q5 No item is taken before its due time, by the consumer's wall clock.
//   - Q6 A change of the queue wakes at most three waiting consumers, however many wait.
//   - Q7 A caller that gave up leaves no znode, and loses no item, unless Unknown is set.
package queue
