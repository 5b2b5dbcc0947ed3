// Package cluster runs servers and ensembles in this process and does to them what production will: stop, kill, pause, partition, expire
// sessions, lose answers, let time pass. Package zktest and `gozkd serve --ensemble` are its two faces.
//
//	L1  What is asked for is done when the call returns: a server that was started serves, one that was killed has ended, time that
//	    was let pass has passed for sessions, TTLs and containers, and what followed from it is applied.
//	L2  A member keeps its address and its data from one life to the next, killed or not: what it acknowledged is there again.
//	L3  Members talk to each other over a network in memory, so no port is needed for it, and any link can be cut. Clients
//	    come over TCP, or over memory too, as where time is virtual nothing may wait for a socket.
//	L4  Nothing is left behind by Close: no goroutine, no file, no port.
//	L5  A fault on what does not exist, or on a member whose state does not fit, is an error that says so, and changes nothing.
package cluster
