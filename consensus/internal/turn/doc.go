// Package turn carries out the work of a member's core in the order that raft's safety depends on.
// A [Loop] is a member: events go in through its methods, and [Loop.Turn] does everything that
// follows from them through a [Host], which is the disk, the network, the state machine and the
// clock.
//
// Package consensus drives a Loop with goroutines and a real disk, the simulator in its tests with
// simulated time and disks that crash. The package itself has no clock, no goroutine and no I/O.
//
// The order of a turn:
//
//  1. Messages leave. Core has put nothing among them that must not leave before a write; such
//     messages are responses of the append that they depend on.
//  2. Appends go to the log. Only when they are durable does the host call [Loop.LogWritten], which
//     passes the responses on: persist before respond.
//  3. Committed batches are applied, in order, then the reads run that waited for them.
//  4. A new ensemble is formed: log, then checkpoint, then raft. Finished changes of the membership
//     are reported.
//  5. Checkpoints are sent, then written, if they are due.
//
// A checkpoint from another member is installed as part of the log, in its place among the appends;
// the state machine switches to it before the append's responses are passed on.
//
// The transcripts in testdata show what members ask of their hosts in an election, a hand-over, a
// broken transfer and other situations. TestScripts in script_test.go explains their notation.
package turn
