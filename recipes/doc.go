// Package recipes is the ground on which recipes for ZooKeeper stand: a client that tries again, whose writes can be repeated after a lost
// answer, and that knows that its session is lost before the server can give away what hangs on it. It works on any ZooKeeper, over
// go-zookeeper's connection. The recipes themselves are the packages below this one.
//
// Invariants:
//   - G1 a Session's Context is over no later than the leader can end the session, by the client's clock alone;
//   - G2 a Session that is over stays so: what the server still has of it is closed before another begins;
//   - G3 a write that is reported as done was applied, once; one that is reported as failed was not applied, unless the error's
//     Unknown says so;
//   - G4 when ctx ends, the caller waits no longer; what is under way then is undone, or finished, in the background;
//   - G5 nothing is left behind by who gave up: no goroutine longer than the connection needs to answer or give up, no protected znode, and
//     at most one armed watch per znode and kind;
//   - G6 after Close has returned without an error, nothing of the Client runs.
//
// docs/internals/recipes.md says why they hold.
package recipes
