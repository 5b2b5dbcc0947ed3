// Package session tracks which sessions are alive: the tracker records when each client was last
// heard from, which is not replicated. Every server keeps a tracker; only the leader asks its
// tracker which sessions have expired. The replicated part of a session (its timeout, password and
// ephemerals) is in package datatree.
//
// Sessions are kept in buckets of a tick, as in ZooKeeper's ExpiryQueue. So a touch costs the
// same with ten sessions and with a million, and a call of Expired in each tick finds all expired
// sessions.
//
// Invariants:
//
//	E1  Expired never returns a session before its timeout has passed since it was last heard from.
//	E2  Expired returns the session if called more than the timeout plus one tick after that moment.
//	E3  A report that is older than the newest report changes nothing.
//	E4  A session that Expired has returned is closing. Expired does not return it again until a newer
//	    report or Retry puts it back. The tracker knows it until Remove.
//
// The package has no clock and no goroutine: the time is an argument. Source: ZooKeeper's
// SessionTrackerImpl and ExpiryQueue.
package session
