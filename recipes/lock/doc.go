// Package lock has locks that processes share: a mutex, a read/write lock, a semaphore, and several locks as one. They stand in the znodes of
// Curator's InterProcessMutex, InterProcessReadWriteLock and InterProcessSemaphoreV2, and of kazoo's Lock, ReadLock, WriteLock and
// Semaphore, so that Go, Java and Python share them.
//
// What is held has a Context that ends before the server can give it to somebody else, a Token that rises from holder to holder, and a
// Commit that writes only if it is still held.
//
// Invariants:
//   - K1 of the Contexts of a mutex one at most is alive; of a read/write lock, that of one writer, or those of readers only;
//   - K2 of a semaphore no more leases are alive than the maximum that the last of them was given under;
//   - K3 who comes first is served first; a reader that comes after a writer waits for it, so writers don't starve;
//   - K4 who waits watches one znode, and what is let go of wakes those only who get it next, or one that looks again;
//   - K5 who gave up, failed, or lost its session leaves no znode behind;
//   - K6 a read lock that comes of a write lock is there before the write lock goes: no other writer comes in between;
//   - K7 of several locks as one, all are held or none.
//
// docs/internals/recipes.md says why they hold, what each costs, and what Curator and kazoo need to be told.
package lock
