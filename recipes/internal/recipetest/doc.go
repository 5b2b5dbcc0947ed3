// Package recipetest is what the tests of all recipes have in common: worlds on virtual time in which things go wrong at a chosen moment, and
// checkers of what was seen there. It is for tests alone.
//
//	Run     a scenario in a world: an ensemble and its clients in a bubble of testing/synctest
//	Steps   a scenario again and again, with one fault at each request of a client
//	Check   a scenario under whatever troubles rapid draws; a failing one shrinks and can be replayed
//	Holds   who held what, and when: mutual exclusion, permits, readers and writers
//	Items   what was put and taken: exactly once, at least once, in order
//	Servers a server on a real port, or the one that GOZKD_RECIPES_SERVERS names, for what is to run on any ZooKeeper
//
// Scenarios get a testing.TB, and may call all of its methods, FailNow and its like from their own goroutine only. In a bubble nothing waits
// for sockets, and time.Sleep is how time passes: an hour takes no longer than a second.
package recipetest
