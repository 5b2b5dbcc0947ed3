// Package interop lets processes of several languages share recipes: one lock, one queue, one election for Curator, kazoo
// and ours. docs/guide/recipes.md says what can be shared, and how.
//
// For each language there is a program, a peer, that does what it is told on its standard input: test/compat/java/src/Peer.Curator,
// test/compat/kazoo/peer.py and test/compat/interop/gopeer. This package starts them on one server, gives them work in an order
// that is scripted or drawn, and checks what must hold between them by its own clock: what a peer holds it has at least from the
// arrival of its answer until it is asked to let go.
package interop
