// Package core is the pure part of a member, without clock, goroutine and I/O. Requests, messages,
// ticks and acknowledgements of the disk go in; records to write, messages to send, batches to
// apply and reads to run come out of [Core.Ready].
//
// A [Core] is raft, the proposal streams and linearizable reads. Each other matter has a part that
// decides about it: [Membership], [Admission], [Clock], [LogStall], [Relays], [Levels] and
// [Retention].
//
// Package turn carries out what Ready returns, in the right order.
package core
