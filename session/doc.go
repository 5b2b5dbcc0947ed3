// Package session knows which sessions are still alive. Only the leader asks: what it tracks is when a client was last
// heard from, which is not replicated. What is, a session's timeout and password and ephemerals, is in datatree.
//
// Sessions lie in buckets of one tick, as in ZooKeeper's ExpiryQueue, so that a touch costs the same with ten sessions and
// with a million, and one look per tick finds all that are over.
//
// What holds:
//
//	E1  Expired returns no session before its timeout has passed since it was last heard from.
//	E2  Called at any time more than timeout plus one tick after that, it does.
//	E3  News that is older than what is known changes nothing.
//	E4  A session that Expired has returned is closing: it is not returned again until it is put back, by news of it or
//	    by Retry, and it stays known until Remove.
//
// There is no clock and no goroutine here: the time is an argument. Source: ZooKeeper's SessionTrackerImpl, ExpiryQueue.
package session
