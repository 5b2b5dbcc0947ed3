// Package election lets processes choose a leader. They stand in line, with the znodes of Curator's LeaderLatch or LeaderSelector, or of
// kazoo's Election, and the first in line leads.
//
//	Latch      stands from Start to Close, and is asked whether it leads
//	Selector   calls a function while it leads
//
// Who leads has a *recipes.Hold: its Context ends before anybody else can lead, its Token is greater than that of all leaders before, and its
// Commit writes only if it leads still.
//
// Invariants:
//   - E1 of the Contexts of all leaders one at most is alive;
//   - E2 the tokens of leaders rise;
//   - E3 who comes first leads first, and who lost his place stands again, at the end;
//   - E4 who waits watches one znode, and the end of one leadership wakes one candidate;
//   - E5 who is closed, or gave up, leaves no znode behind, and no goroutine.
//
// docs/internals/recipes.md says why they hold.
package election
