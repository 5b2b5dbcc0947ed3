// Package fourletter answers ZooKeeper's four-letter words. docs/reference/monitoring.md has the
// table of words, and their formats are ZooKeeper's.
//
// Like the admin commands and the metrics, the answers are made of the public facts of a server,
// and of nothing else. But while packages admin and metrics import server, package server imports
// this package: a client sends a word instead of a connect request on the client port, so every
// server answers words, also a server that is embedded in another program, without any wiring.
// Hence the Server interface here, which *server.Facts implements, and the types of its results in
// package server/facts.
package fourletter
