// Package consensus replicates batches of opaque requests with raft, keeps them on disk, and gives
// them to a state machine in one order. The package knows nothing of znodes.
//
// The package has three layers. Package internal/core is pure: raft, the streams of requests, reads
// and the membership, without goroutine, clock or disk. Package internal/turn is a turn of the
// loop: it carries out the core's work in the order that raft's safety depends on, through an
// interface. [Node] implements that interface with a ticker, the write-ahead log, the checkpoint
// file, and the network of package peer. The simulator in the tests implements the interface with
// simulated time and disks that crash. A server alone runs the same code as the members of an
// ensemble, as an ensemble with one member.
//
// Guarantees, each with tests of its name:
//
//	C1  A request is applied only after its entry is on the disks of a quorum, and Ref is
//	    answered only then.
//	C2  Requests of one stream (one server in one incarnation) are applied in the order of
//	    their numbers, each exactly once, however often they were sent.
//	C3  A restart does not change the state: it is the checkpoint's plus the log's later entries.
//	C4  A checkpoint is visible completely or not at all, and names its index.
//	C5  After a disk error the node applies and acknowledges nothing more: Run returns the error.
//	C6  Batch times never go back, whatever the wall clocks of the leaders do.
//
// Goroutines: Run is the loop. Only the loop uses the core and calls the state machine. Another
// goroutine, started and awaited by Run, writes the write-ahead log; in a server alone the loop
// writes the log itself when there is nothing else to do. Further goroutines live while a
// checkpoint is written, sent or received, and package peer has its own. They all talk to the loop
// through its inbox. All methods of Node except Run and Close may be called from any goroutine at
// any time.
package consensus
