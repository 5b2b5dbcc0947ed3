// Package queue has the queues of Curator and kazoo, on the same znodes, so that Go, Java and Python put into and take from one queue.
//
//	New, NewPriority, NewDelay, NewID   Curator's DistributedQueue and its kin, with Locks its lockPath
//	NewSimple                           Curator's SimpleDistributedQueue, which is ZooKeeper's own recipe
//	NewKazoo, NewKazooLocking           kazoo's Queue and LockingQueue
//
// All have Take and TryTake, after which an item is gone, and with locks TakeLocked and Handle, after which it comes back unless
// it is done. Whatever was made of a queue may be used by any number of goroutines, and best is: what they ask for at the same time is asked
// with one request.
//
// Invariants:
//   - Q1 an item that was put is there once; one whose put failed is not, unless the error's Unknown says so;
//   - Q2 an item is taken once, and by nobody when a take fails, unless the error's Unknown says so;
//   - Q3 what is locked is nobody else's until Done, Return, or the end of Item.Context; then Done has removed it, or it can be taken again;
//   - Q4 one consumer takes items in the order of the queue: those of one producer as they were put, lesser priorities first;
//   - Q5 no item is taken before its time, by the wall clock of who takes it;
//   - Q6 a change of the queue wakes at most three of those who wait, however many they are;
//   - Q7 of who gave up nothing is left, and no item is lost by it.
//
// docs/internals/recipes.md says why they hold, and what they cost.
package queue
