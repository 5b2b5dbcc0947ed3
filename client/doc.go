// Package client is a ZooKeeper client for one session with an ensemble of ZooKeeper or gozkd, with
// all operations from 3.4 to 3.10.
//
// Connect opens a session. Each method of the Client sends one request and waits for its reply or
// the end of its ctx. Requests of many goroutines share the connection, in the order of the calls,
// without waiting for each other's replies. When the connection is lost, requests in progress fail
// with proto.ErrConnectionLoss and are not sent again. The Client resumes the session on another
// server, with its credentials and watches, while new requests wait.
//
// docs/internals/client.md has the guarantees, and what a lost request may have done.
package client
