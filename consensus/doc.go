// Package consensus replicates batches of opaque requests with raft, keeps them on disk, and gives
// them to a state machine in one order. The package knows nothing of znodes.
//
// The package has three layers. Package internal/core is pure: raft, the streams of requests, reads
// and the membership, without goroutine, clock or disk. Package internal/turn is a turn of the
// loop: it carries out the core's work in the order that raft's safety depends on, through an
// interface. [Node] implements that interface with a ticker, the write-ahead log, the checkpoint
// file, and the network of package peer. The simulator in the tests implements the interface with
// simulated time and disks that crash. A standalone server runs the same code, as an ensemble with
// one member.
//
// Guarantees, each with tests of its name:
//
//	C1  A request is applied, and its Ref handed back, only after its entry is on the disks of
//	    a quorum.
//	C2  Requests of one stream (one server in one incarnation) are applied in the order of
//	    their numbers, each exactly once, however often they were sent.
//	C3  A restart does not change the state: it is the checkpoint's plus the log's later entries.
//	C4  A checkpoint is visible completely or not at all, and names its index.
//	C5  After a disk error the node applies and acknowledges nothing more: Run returns the error.
//	C6  Batch times never go back, whatever the wall clocks of the leaders do.
//
// A checkpoint (C3, C4): after CheckpointRequests or CheckpointBytes the loop takes the changed
// keys from the state machine (Capture) and, between the same two batches, the index, term, time
// and streams. Another goroutine merges both into the file. Then the log drops the entries that the
// previous checkpoint covers, except those kept in memory for other members. [Open] reads the whole
// checkpoint, then the log. It refuses a checkpoint without a log, entries without a checkpoint, a
// gap between the two, a log that ends before its committed index, and another member's directory.
// A damaged checkpoint is replaced by the previous one if the log continues that one.
//
// A member that lacks more entries than are in memory gets a checkpoint: the one on disk if the log
// in memory continues it and its membership has the member, otherwise a new one. It travels as keys
// and values over its own connection into a separate file, while the state machine builds the new
// state from the same stream and checks the digest. Only when everything is verified and synced
// does raft learn of it. If raft accepts, the log writer renames the file, empties the log, and the
// state machine switches. A crash in between leaves a checkpoint newer than the log, or followed by
// a log of another history, recognized by its terms; Open then drops that log. Requests of this
// server that the checkpoint contains have unknown results here: OnLost reports them.
//
// When a leader leaves: a leader that stops transfers leadership to the most up-to-date voter, and
// waits for that for at most two election timeouts, and no longer than a tickTime. If the
// connection to the leader breaks and its address refuses connections, its process is gone: the
// reachable voter with the lowest id campaigns at the next tick, each further one three ticks
// later. Otherwise a silent leader costs an election timeout: 10 to 20 ticks of tickTime/40, which
// is kept between 20 ms and 50 ms (raftTick in server/server.go). Where messages take longer than
// that, a member that sees late votes slows raft's clock down, up to four times, for a while.
//
// Goroutines: the loop takes turns, one at a time. Only a turn uses the core and calls the state
// machine. Run takes turns, and so does a goroutine that brings something for the loop, while there
// is no crowd: the caller of Drive, a reader of package peer, the writer of the log. Another
// goroutine, started and awaited by Run, writes the write-ahead log; in a standalone server the
// loop writes the log itself when there is nothing else to do. Further goroutines live while a
// checkpoint is written, sent or received, and package peer has its own. They all talk to the loop
// through its inbox. All methods of Node except Run and Close may be called from any goroutine at
// any time.
package consensus
