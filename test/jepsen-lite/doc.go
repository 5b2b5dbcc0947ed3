// Package jepsenlite tests an ensemble from outside: real processes, files and sockets, other
// people's clients, and faults while they work. The clients' observations are then checked against
// ZooKeeper's promises.
//
// The parts, in the order of a run:
//
//	cluster  the members as processes, and a proxy on each link between two of them
//	traffic  clients, and the loads that they put on the ensemble
//	tap      records each client connection as a history
//	faults   what is done to the ensemble meanwhile
//	model    the znode that linearizability is checked against
//	check    the properties of a history
//	report   the summary of a run
//
// Loads judge nothing: each check is a function of a history, and its tests include wrong
// histories. The design is in docs/quality/how-we-test.md.
package jepsenlite
