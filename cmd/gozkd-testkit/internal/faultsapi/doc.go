// Package faultsapi lets HTTP requests do to the servers of a cluster what package zktest does in
// Go, for tests in other languages.
//
// Requests and replies are small JSON values; GET / lists them, docs/guide/testing.md shows how
// they are used. A reply with a status other than 200 is {"error":"why"}: 400 for an invalid
// request, 404 for an unknown member, session, fault or path, 409 for a state that does not allow
// the request, 504 for a timeout.
//
//	R1  The server is for programs on this machine: it listens on the loopback and refuses
//	    requests that a browser sends for a web page.
//	R2  The effect of a request is complete when its reply is sent (L1 of package cluster).
//	R3  Requests may be concurrent. A request that waits ends when its client disconnects.
//	R4  Close leaves no goroutine and no connection.
package faultsapi
