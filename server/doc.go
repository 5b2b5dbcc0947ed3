// Package server is a ZooKeeper server: connections, the request pipeline, the order of replies,
// and the API to embed it. Connections and the tree meet only in this package. Counting and
// measuring are in internal/meter, and the answers to four-letter words in package fourletter.
//
//	s, err := server.New(server.Config{})   // in memory, on a free port of the loopback
//	err = s.Start(ctx)                      // returns when clients are served
//	addr := s.Addr()
//	err = s.Close()
//
// Invariants (see also docs/internals/server.md):
//
//	V1  Replies leave in the order of their requests, per connection, except that a ping is answered
//	    while a reconfig waits.
//	V2  A read sees all earlier and no later writes of its own connection: after an unfinished
//	    write, the read waits in the connection's queue, and runs after that write and before the
//	    connection's next one.
//	V3  A client gets the event of a change before any reply that shows the change, and never
//	    before the reply of the read that set the watch: replies are put on the output under the
//	    tree's lock, events under its write lock.
//	V4  A reply to a write leaves only after the write is on disk and applied.
//	V5  Zxids in the replies of one connection never decrease.
//	V6  A bad frame costs its own connection and nothing else.
//
// Goroutines, which end with Close unless said otherwise:
//
//   - One per connection reads the socket and owns the input buffer.
//   - consensus.Run owns raft and, through Apply, the tree's changes, events and replies to writes.
//   - The session loop follows changes of leadership; twice a tick it expires sessions or reports
//     them to the leader.
//   - The collector deletes containers and TTL znodes.
//   - An accept loop per client port owns its listener, until Close or a reconfig that moves the
//     port; followClientAddress and followPeerAddress make such moves in an ensemble.
//   - finishDrain answers the long queue of a connection, until it is empty.
//   - One per TLS handshake, for at most 10 s; then the connection gets a new goroutine.
//   - A flusher writes the output that a socket did not take at once.
//
// Locks are always taken in this order: Server.treeMu, memoryBudget.evicting, conn.mu,
// connTable.mu, and the leaf locks of expiry, the watch table and the mailboxes. No goroutine waits
// for a disk or a socket, log lines excepted, while holding one of these locks.
package server
