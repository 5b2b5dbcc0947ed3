// Package core is the pure part of a member, without clock, goroutine and I/O: raft, the proposal
// streams, linearizable reads, the membership, and the forming of a new ensemble. Requests,
// messages, ticks and acknowledgements of the disk go in; records to write, messages to send,
// batches to apply and reads to run come out of [Core.Ready].
//
// Package turn carries out what Ready returns, in the right order.
package core
