// Package cache keeps copies of znodes in memory that follow the server: of a znode, of the
// children of a znode, or of a tree. WatchData and WatchChildren are watches that are set again
// after each event.
//
//   - A Tree of NewZnode, NewChildren or NewTree is made, started, and then read without any
//     request.
//   - WatchData and WatchChildren call a function with each new state. PatientChildren waits until
//     the children have stopped changing.
//
// When the session ends, a cache keeps its content and reads everything again in the next session.
//
// Invariants:
//   - C1 While the connection lasts and nothing changes, the cache soon equals the tree, and
//     Complete reports true.
//   - C2 A znode never gets older in a cache: neither from event to event, nor when another server
//     that lags answers.
//   - C3 A znode that was deleted and created again is a new znode: Removed and Added, not Changed.
//   - C4 Applying all events to an empty map gives the content of the cache.
//   - C5 Complete means that everything that existed when the connection was made has been read
//     since, or has not changed since it was read. From the loss of the connection until then a
//     cache is not complete, and keeps its content.
//   - C6 There is one armed watch per znode and kind, and after a change only what changed is read
//     again.
//   - C7 After Close no goroutine of the cache runs.
package cache
