// Package recipetest helps to test recipes: with ensembles on virtual time in which faults happen
// at a chosen moment, and with checkers of the clients' observations. Only tests use recipetest.
//
//	Run          runs a scenario in a World: an ensemble and its clients in a testing/synctest bubble
//	Steps        runs a scenario repeatedly, with one fault at each request of a client
//	Check        runs a scenario with troubles that rapid draws and shrinks
//	HoldHistory  checks who held what and when: mutual exclusion, permits, readers and writers
//	ItemHistory  checks what was put and taken: exactly once, at least once, in order
//	Servers      returns a server on a real port, or those that GOZKD_RECIPES_SERVERS names
//
// Scenarios get a testing.TB. They may call FailNow and its variants only from their own goroutine.
// In a bubble nothing waits for sockets, and time.Sleep lets virtual time pass: an hour takes no
// longer than a second.
package recipetest
