// Package serverlist is the membership of an ensemble as text: the server.N lines of zoo.cfg, the data of
// /zookeeper/config, and what a reconfig request makes of them.
//
// It is pure: it resolves no name, opens nothing, reads no clock, and gives equal results for equal arguments on
// every member. It knows nothing of raft; who is in the set and who really answers are different questions.
package serverlist
