// Package watch holds the watches of a server: which connection is told about changes of which
// path.
//
// The table is in memory and local to a server. A watch belongs to a connection, not to a session,
// and ends with the connection. The table knows a connection by its [ConnID] only. The server
// decides how an event is encoded and whether the ACL allows it.
//
// Invariants:
//
//	T1  A one-shot watch is matched at most once, by the first event that concerns it, and is removed
//	    when Match returns.
//	T2  A call of Match appends each connection at most once.
//	T3  The modes of a connection on a path are independent of each other, as in ZooKeeper 3.9 and
//	    later.
//	T4  The table holds no entry without a mode, and no path or connection without an entry.
//
// A [Table] has a single mutex, which makes each method atomic. The server must read and set the
// watch of that read atomically, and must match events in the order of the transactions: it calls
// Add under the lock of its tree, for reading or writing, and Match under the write lock. Source of
// the rules: ZooKeeper's WatchManager, and "ZooKeeper Watches" in its programmer's guide.
package watch
