// Package agree lets processes agree: on a change that all make or none, on a host to meet, and on
// a division of work.
//
//	Transaction   two-phase commit, after ZooKeeper's recipe of that name
//	Rendezvous    the first participant is the host, after ZooKeeper's paper
//	Partitioner   divides a set among members; kazoo: SetPartitioner
//
// When the session ends, a participant that waits for a decision takes a new place in the line, a
// meeting with this process as host is over, and a share is lost. Votes and decisions stay.
//
// Invariants:
//   - A1 A transaction is decided once, and every caller gets the same decision.
//   - A2 A transaction is committed only if all sites have voted for the commit, each once.
//   - A3 A transaction is decided as long as one participant continues, even if all others die. A
//     site that is gone without a vote is not waited for.
//   - A4 A committed transaction is not forgotten before all sites have said that they know the
//     decision. So a missing transaction was aborted, or is over.
//   - A5 Participants of a rendezvous whose contexts are alive have the same host, except for the
//     moment that a change takes to reach them.
//   - A6 No part of a set is in two shares whose contexts are alive.
//   - A7 When the members have not changed for long enough, and have released what they had to,
//     every part is in a share.
package agree
