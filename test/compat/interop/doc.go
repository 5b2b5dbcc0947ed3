// Package interop makes processes of several languages share recipes: a lock, a queue, an election
// for Curator, kazoo and ours. docs/guide/recipes.md says what can be shared, and how.
//
// Each language has a program, a peer, that executes commands from its standard input:
// test/compat/java/src/Peer.Curator, test/compat/kazoo/peer.py and test/compat/interop/gopeer. This
// package starts them on a server, sends them commands in a scripted or random order, and checks
// invariants between them by its own clock: a peer holds an object at least from the arrival of its
// answer until it is asked to release it.
package interop
