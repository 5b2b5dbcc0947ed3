// Package cluster runs the members of package ensemble and injects faults: members stop, crash,
// pause and are partitioned, sessions expire, replies are lost, time passes. Package zktest and
// cmd/gozkd-testkit are built on it.
//
//	L1  A call returns when its effect is complete: a started server serves, a killed server has
//	    ended, and everything that Advance makes due for sessions, TTLs and containers is applied.
//	L2  A member keeps its address and its data from one run to the next, also after Kill: data
//	    that the member acknowledged is not lost.
//	L3  Members talk over a network in memory, which needs no ports and on which every link can be
//	    cut. Clients connect over TCP, or over memory too: in virtual time nothing may wait for a
//	    socket.
//	L4  Close leaves nothing: no goroutine, no file, no port.
//	L5  A fault that names something unknown, or a member in an unsuitable state, is an error and
//	    changes nothing.
//
// How it injects faults: internal/faultproxy wraps the client port's listener and reads frame
// headers (not through TLS), to let requests fail, wait, or lose their reply; a failed request
// reaches the server as "exists /" with the same xid, which keeps the order of replies. The server
// itself says which session is attached to a connection, also through TLS. A kill is
// Server.Abort. In a pause Config.Now does not return, and a server does nothing without asking for
// the time. In a partition internal/memnet and internal/faultproxy hold bytes.
package cluster
