// Package recipes is the base of the ZooKeeper recipes in its subpackages: a Client that retries
// requests, repeats writes safely after a lost answer, and knows that its session is lost before
// the server can give the session's locks to others. The Client runs on package client, or with
// Wrap on go-zookeeper's connection, and works with any ZooKeeper server.
//
// Invariants:
//   - G1 A Session's Context ends no later than the leader can end the session, by the client's
//     clock alone.
//   - G2 A Session that has ended stays so: its remains on the server are closed before another
//     session begins.
//   - G3 A write that is reported as done was applied once. A write that is reported as failed was
//     not applied, unless the error's Unknown is set.
//   - G4 When ctx ends, the caller stops waiting at once. The request in progress is undone or
//     finished in the background.
//   - G5 A caller that gave up leaves nothing: no goroutine for longer than the connection
//     takes to answer or give up, no protected znode, and at most one armed watch per znode and
//     kind.
//   - G6 After Close has returned nil, no goroutine of the Client runs.
//
// docs/internals/recipes.md says why they and those of the subpackages hold, docs/guide/recipes.md
// what each operation costs.
package recipes
