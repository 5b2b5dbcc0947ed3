// Package jepsenlite tests an ensemble from outside: real processes, real files and real sockets, clients that are not
// ours, and faults while they work. What the clients saw is judged afterwards, against what ZooKeeper promises.
//
// The parts, in the order in which a run meets them:
//
//	cluster  the members as processes, and a proxy on each link between two of them
//	traffic  clients, and the loads that they put on the ensemble
//	tap      what passes each client's connection, as a history
//	faults   what is done to the ensemble meanwhile
//	model    the znode that linearizability is checked against
//	check    what the history must hold to
//	report   what is said in the end
//
// Everything is decided by reading the history: no load judges what it sees itself. So each check is a function of a
// history, and its tests hand it one that is wrong. The design is in docs/quality/how-we-test.md.
package jepsenlite
