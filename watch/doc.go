// Package watch is the table of watches of one server: who is to be told about which path.
//
// It is in memory and local. Watches belong to a connection, not to a session, and end with it. The table knows a
// connection only by its [ConnID]: what an event looks like and whether the ACL lets it through is the server's matter.
//
// What holds:
//
//	T1  A one-shot watch is matched at most once, by the first event that concerns it, and is gone when Match returns.
//	T2  A connection appears at most once in what one Match appends.
//	T3  The modes of one connection on one path are independent of each other, as in ZooKeeper 3.9 and later.
//	T4  An entry without a mode, and a path or connection without an entry, is not in the table.
//
// A [Table] has one mutex, which makes each method atomic. That a read and the watch it sets are one step, and that
// events are matched in the order of the transactions, is the server's doing: it calls Add under its tree's read lock and
// Match under the write lock. Source of the rules: ZooKeeper's WatchManager and its programmer's guide, "ZooKeeper Watches".
package watch
