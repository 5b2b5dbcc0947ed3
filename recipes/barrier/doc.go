// Package barrier lets processes wait for each other: at a Barrier until somebody removes it, and
// in a Double until enough have entered, and again until all have left. The znodes are those of
// Curator's DistributedBarrier and DistributedDoubleBarrier, and of kazoo's Barrier and
// DoubleBarrier.
//
// Invariants:
//   - B1 Wait returns nil only if the barrier was not set at some moment during the call, even if a
//     server lags, or answers or sessions are lost.
//   - B2 Enter returns a Participant only if the barrier was open at some moment while that
//     participant was in. The barrier opens at a moment when the required number of members is in,
//     and stays open until the last of them has left.
//   - B3 Leave returns nil only when every member that was in when Leave began has left, or its
//     session has ended.
//   - B4 A member that has left a round can enter the next at once: neither round waits for the
//     other.
//   - B5 A member that gave up, or whose session has ended, leaves no znode except those
//     listed in docs/internals/recipes.md.
//   - B6 An event wakes only the members that wait for that event. A member that the opening wakes
//     sends no request because of it.
//
// B2 and B3 hold among Go processes. docs/internals/recipes.md says why, and what holds together
// with Curator and kazoo.
package barrier
