// Package election lets processes choose a leader. Candidates stand in line with the znodes of
// Curator's LeaderLatch or LeaderSelector, or of kazoo's Election, and the first in line leads.
//
//	Latch      is a candidate from Start to Close; Await and Leadership return its leadership
//	Selector   calls a function while leading
//
// The leader has a *recipes.Hold. Its Context ends before another candidate can lead: when the
// session ends, for example. Its Token is greater than those of all earlier leaders. Its Commit
// writes only while the leadership lasts.
//
// Invariants:
//   - E1 At most one leader's Context is alive.
//   - E2 The tokens of successive leaders rise.
//   - E3 Candidates lead in the order of arrival. A candidate that lost its place joins again at
//     the end.
//   - E4 A waiting candidate watches one znode. The end of a leadership wakes one candidate.
//   - E5 A candidate that was closed or gave up leaves no znode and no goroutine.
package election
