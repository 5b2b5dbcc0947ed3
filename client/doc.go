// Package client is a ZooKeeper client: one session with an ensemble of ZooKeeper or gozkd, all op codes from 3.4 to 3.10.
//
// Connect opens a session; methods of the Client send one request each and wait for its reply or for the end of their ctx.
// Requests of many goroutines share one connection, in the order of the calls, without waiting for each other's replies. When
// the connection is lost, what was under way fails with proto.ErrConnectionLoss, and nothing of it is sent again; the session is
// taken up on another server, with its credentials and watches, while later requests wait.
//
// What holds, and what a lost request may have done, is in docs/internals/client.md.
package client
