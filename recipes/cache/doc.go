// Package cache keeps copies of znodes in memory that follow the server's: of one znode, of the children of one, of a tree. And it has
// watches that set themselves again.
//
// A cache is made, started, and then read without asking anybody:
//
//   - Node, Children and Tree have Start, Wait, Complete, Events, Listen and Close, and methods to read what they have;
//   - WatchData and WatchChildren call a function with each new state until it has enough; PatientChildren waits until nobody comes or goes.
//
// Invariants:
//   - C1 when the connection is there and nothing changes any more, the cache is soon equal to the tree, and says that it is complete;
//   - C2 what a cache shows of a znode never gets older: not from one event to the next, and not when another server answers that lags behind;
//   - C3 a znode that was deleted and created again is another one: it is removed and added, not changed;
//   - C4 events lead from nothing to what the cache shows: who applies them all has that;
//   - C5 complete means that all that was there when the connection was made has been read since; from the loss of the connection until
//     then a cache is not complete, and goes on showing what it had;
//   - C6 one armed watch per znode and kind, and after a change only what has changed is read again;
//   - C7 after Close nothing of it runs.
//
// docs/internals/recipes.md says why they hold, and what it costs.
package cache
