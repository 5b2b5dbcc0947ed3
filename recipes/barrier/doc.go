// Package barrier lets processes wait for each other: at a Barrier until somebody opens it, in a Double until all are there, and again until
// all are done. Their znodes are those of Curator's DistributedBarrier and DistributedDoubleBarrier, and of kazoo's Barrier and DoubleBarrier.
//
// Invariants:
//   - B1 Wait returns nil only if there was a moment, while it ran, in which the barrier was not set: also on a server that lags
//     behind, and after lost answers and sessions;
//   - B2 Enter returns a Member only if there was a moment, while that was in and alive, in which the barrier was open: it is opened
//     only in a moment in which so many members as it needs are in, and stays open until the last of them has gone;
//   - B3 Leave returns nil only when all who were in when it began have left, or their sessions are over;
//   - B4 who leaves one round can enter the next at once: neither waits for the other;
//   - B5 who gave up, or whose session is over, leaves no znode behind but what is named in docs/internals/recipes.md;
//   - B6 what happens wakes those who wait for just that, and the opening costs those who are woken no request.
//
// B2 and B3 hold among Go processes. docs/internals/recipes.md says why, and what becomes of them together with Curator and kazoo.
package barrier
