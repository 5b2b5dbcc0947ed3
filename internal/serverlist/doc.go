// Package serverlist parses and prints the members of an ensemble: the server.N lines of zoo.cfg,
// the data of /zookeeper/config, and the result of a reconfig request.
//
// The package is pure: it resolves no names, opens nothing and reads no clock, so every member
// computes the same result from the same arguments. It knows nothing of raft or running members.
package serverlist
