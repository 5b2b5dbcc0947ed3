// Package client is a ZooKeeper client for one session with an ensemble of ZooKeeper or gozkd, with
// all operations from 3.4 to 3.10.
//
// Connect opens a session. Each method of the Client sends one request and waits for its reply or
// the end of its ctx. Requests of many goroutines share the connection, in the order of the calls,
// without waiting for each other's replies. When the connection is lost, requests in progress fail
// with proto.ErrConnectionLoss and are not sent again. The Client resumes the session on another
// server, with its credentials and watches, while new requests wait. Only a server can report that
// a session has expired: without any server a Client waits as long as its callers' contexts allow.
//
// Invariants:
//
//	C1  Replies are matched to requests by their order. A reply out of order ends the connection.
//	C2  A request that was sent is never sent again. If its reply is lost, the error says so, and for
//	    a write that its outcome is unknown (Error.Unknown).
//	C3  A request made without a connection waits until its ctx ends. It was not sent.
//	C4  OnEvent gets everything from one goroutine, in order of arrival: the event of a change is
//	    queued before any reply that shows the change.
//	C5  A new connection does its TLS handshake and, once it has a session, its SASL exchange. Then
//	    it sends credentials, then watches, then requests.
//	C6  The session id never changes under a Client. A server that answers with another id ends the
//	    session, except where a read-only server had given the old one.
//	C7  Nothing that a server sends makes the Client panic, or allocate more than ten times what
//	    arrived plus a constant.
//	C8  After Close no goroutine of the Client runs.
//
// After a reconnect watches are set again relative to the highest zxid of any reply or event. The
// event of the new connection comes after the events that persistent watches missed. If it has
// CaughtUp, they have missed nothing; otherwise, as always with ZooKeeper, a cache must read again.
//
// Outcomes of a write, by the code of its *Error:
//
//	of the server                       not carried out
//	ErrBadArguments                     not sent
//	ErrConnectionLoss                   unknown
//	ErrMarshallingError                 unknown: the reply cannot be decoded
//	ErrOperationTimeout, cause of ctx   unknown if it was sent
//	ErrSessionExpired, ErrAuthFailed    unknown if it was sent
//
// Replies own their memory.
package client
