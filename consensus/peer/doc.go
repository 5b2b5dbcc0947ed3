// Package peer connects the members of an ensemble: frames over TCP, and checkpoint streams on connections of their own.
// It knows no raft and no configuration; what it carries are opaque bytes.
//
// Each member dials each of its peers and sends its frames on the connection that it dialled. On a connection that it
// accepted it only reads, and says each second that it still does. Every connection begins with a hello and its answer.
//
// What holds, each with a test of its name:
//
//	P1  Frames of one connection are received whole, unchanged, each once, in the order in which Send took them, up to the
//	    one where the connection ends. Receive is never called for two connections of one peer at the same time. What was
//	    under way when a connection ended is lost: frames do not move to the next connection.
//	P2  Send never blocks. Per peer it holds less than QueueBytes and one frame.
//	P3  Frames and checkpoints pass only between two members that mean each other and of which each accepted the other's
//	    hello. Who is refused learns why; each reason is logged once, not once per try.
//	P4  A reader of ReceiveCheckpoint ends with io.EOF only when the sender's function returned nil and every byte came; and
//	    SendCheckpoint returns nil only when ReceiveCheckpoint returned nil.
//	P5  A side that hears nothing for 5 s gives the connection up. So a peer that takes no bytes is disconnected,
//	    and one that takes them slowly is not.
//	P6  No length that came over the wire makes more than 1 MiB be allocated ahead of the bytes themselves.
//	P7  Up and Down of one peer alternate (Down may repeat while tries fail), from one goroutine; each Up has its Down before
//	    Close returns. After Close no goroutine is left and no method of the Handler is called.
//
// The bytes are in docs/reference/formats.md, the reasons in docs/internals/consensus.md.
//
// Goroutines: one accepts; each peer has one that dials and writes and, while connected, two more: one reads the
// other's beats, one closes the connection when it is to end. Each accepted connection has three: they read, beat and close. All methods may be called from
// any goroutine. SetPeers, Send and Status may be called from the Handler's methods; Close may not, for it awaits them.
package peer
