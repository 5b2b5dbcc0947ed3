// Package server is a ZooKeeper server: connections, the request pipeline, the order of replies, four-letter words, and
// the API to embed it. It is the only place where connections and the tree meet.
//
//	s, err := server.New(server.Config{})   // in memory, on a free port of the loopback
//	err = s.Start(ctx)                      // returns when clients are served
//	addr := s.Addr()
//	err = s.Close()
//
// What holds (see also docs/internals/server.md):
//
//	V1  Replies leave in the order of their requests, per connection.
//	V2  A read sees its own connection's earlier writes and none of its later ones: behind an unfinished write it waits
//	    on the connection's queue and runs right after that write was applied.
//	V3  A client gets the event of a change before any reply that shows the change, and never before the reply of the read
//	    that set the watch: replies are put on the output under the tree's lock, events under its write lock.
//	V4  A reply to a write leaves only after the write is on disk and applied.
//	V5  Zxids in the replies of one connection never go back.
//	V6  A bad frame costs its own connection and nothing else.
//
// Locks, always taken in this order: Server.tree (the tree's RWMutex), conn.mu, Server.connMu, and the leaf locks of the
// watch table, the session tracker and the mailboxes. Nothing waits for a disk or a socket under any of them.
package server
