// Package locks recognizes locks, semaphores and elections by the names of their znodes: those of
// Curator, of kazoo, of package recipes, and of ZooKeeper's own recipes. The result names each
// lock's holders and queue, and groups of sessions that wait for each other.
//
// The package only computes: a caller reads the znodes. The result is as true as the moment at
// which each directory was read.
//
// Invariants:
//   - L1 Of a mutex or an election at most one contender holds. Of a read/write lock, one writer
//     holds or any number of readers.
//   - L2 A contender that waits has a contender before it, and that contender precedes it in the
//     queue.
//   - L3 A Cycle is a loop: each of its sessions waits for the next, the last for the first. A
//     mutex alone never makes a cycle, and an election is part of none.
package locks
