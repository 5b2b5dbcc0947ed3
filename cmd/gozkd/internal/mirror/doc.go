// Package mirror implements `gozkd mirror`, which copies a subtree of a running ensemble to another
// one over client connections, and follows its changes. docs/guide/moving.md is for operators.
//
// A persistent recursive watch tells which znodes changed. Because no watch tells of ACLs, and a
// connection that was lost may have lost events, the whole subtrees are also compared: after each
// reconnection, after each error, and in an interval. Servers without that watch are only compared
// in the interval: watches on each znode would cost them and the mirror memory for every znode, and
// would not tell of ACLs either.
package mirror
