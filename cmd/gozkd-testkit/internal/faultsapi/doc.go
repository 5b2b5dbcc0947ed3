// Package remote is the HTTP face of a lab: what zktest does to servers for tests in Go, it lets tests in other languages do.
//
// Requests and answers are JSON, small and regular; docs/reference/faults-http.md lists them, and so does GET /. An answer with a status other
// than 200 is {"error":"why"}: 400 for a request that makes no sense, 404 for what does not exist, 409 for a state that does not fit, 504
// for what did not come about in time.
//
//	R1  It is for programs on this machine: it listens on the loopback, and refuses requests that a browser sends for a web page.
//	R2  What was asked for is done when the answer comes, as lab promises it.
//	R3  Requests may come at the same time. One that waits ends when its client goes away.
//	R4  Nothing is left behind by Close.
package faultsapi
