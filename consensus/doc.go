// Package consensus replicates batches of opaque requests with raft, keeps them on disk, and hands them to a state machine
// in one order. It knows no znode.
//
// It is a core and a shell. The core (core.go) has no goroutine, clock or disk: requests, messages, ticks and "that write
// is on disk" go in; bytes to write, messages to send and batches to apply come out. The shell ([Node]) runs it on a
// ticker, the write-ahead log, the checkpoint file, and the network of package peer. The members of an ensemble run the same
// code as a server alone, which is an ensemble of one.
//
// What holds, each with a test of its name:
//
//	C1  A request is applied only after its entry is on the disks of a quorum, and Ref is answered only then.
//	C2  Requests of one stream (one server in one incarnation) are applied in the order of their numbers, each exactly
//	    once, whatever was sent again.
//	C3  The state after a restart is the checkpoint's plus the log's entries behind it: the same as without the restart.
//	C4  A checkpoint is visible whole or not at all, and says of which index it is.
//	C5  After an error of the disk the node applies and acknowledges nothing more: Run returns it.
//	C6  Batch times never go back, whatever the wall clocks of the leaders do.
//
// Goroutines: Run is the loop. It alone touches the core and calls the state machine. One more goroutine, started and
// awaited by Run, writes the write-ahead log; in a server alone the loop writes it itself when nothing else is to be done,
// under the log writer's mutex. Others live while a checkpoint is written, sent or received, and package peer has its own; they give
// the loop what they have through its mailbox. All methods of Node but Run and Close may be called from any
// goroutine at any time.
package consensus
