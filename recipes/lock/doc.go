// Package lock has locks that processes share: a mutex, a read/write lock, a semaphore, and
// combinations of locks. Their znodes are those of Curator's InterProcessMutex,
// InterProcessReadWriteLock and InterProcessSemaphoreV2, and of kazoo's Lock, ReadLock, WriteLock
// and Semaphore, so that Go, Java and Python programs share the same locks.
//
// A lock that is held has a Context, which ends before the server can give the lock to another
// holder; a Token, which rises from holder to holder; and Commit, which writes only while the lock
// is held. When the holder's session ends, the lock is released, and Context has ended by then.
//
// Invariants:
//   - K1 At most one Context of a mutex is alive. Of a read/write lock, either one writer's Context
//     is alive or any number of readers'.
//   - K2 The live leases of a semaphore never exceed the maximum under which the latest was
//     granted.
//   - K3 Contenders are served in the order of arrival. A reader that arrives after a writer waits
//     for that writer, so writers do not starve.
//   - K4 A waiting contender watches one znode. A release wakes only the contenders that are served
//     next, or a single contender that checks its turn again.
//   - K5 A contender that gave up, failed or lost its session leaves no znode.
//   - K6 Downgrade creates the read lock before releasing the write lock: no other writer comes
//     between.
//   - K7 Of the locks of a Multi, all are held or none.
//
// docs/guide/recipes.md says which settings Curator and kazoo need.
package lock
