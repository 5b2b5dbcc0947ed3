// Package peer connects the members of an ensemble: it carries frames over TCP, and checkpoints on
// connections of their own. The package knows neither raft nor configuration: all payloads are
// opaque bytes.
//
// Each member dials each of its peers, and sends its frames on the connection that it dialed. An
// accepted connection is for receiving only: the acceptor sends nothing but a heartbeat each
// second. Every connection begins with a hello and its answer.
//
// Invariants, each with a test of its name:
//
//	P1  Frames of one connection are received whole, unchanged, once, and in the order of Send, up
//	    to the frame at which the connection ends. Receive never runs for two connections of one
//	    peer at the same time. Frames that were in transit when a connection ended are lost: they do
//	    not move to the next connection.
//	P2  Send never blocks. Per peer it holds less than QueueBytes plus one frame.
//	P3  Frames and checkpoints pass only between two members that address each other and that have
//	    both accepted the other's hello. A refused member is told the reason. Each reason is logged
//	    once instead of at each attempt.
//	P4  A reader of ReceiveCheckpoint returns io.EOF only if the sender's function returned nil and
//	    every byte arrived. SendCheckpoint returns nil only if ReceiveCheckpoint returned nil.
//	P5  A side that hears nothing for 5 s closes the connection. So a peer that reads nothing is
//	    disconnected, and a peer that reads slowly is not. A receiver of a checkpoint falls silent
//	    when its Handler has read nothing for 2 minutes. A caller whose TLS handshake is
//	    not over after 2 s, or whose hello is not answered for 2 s, longer with each attempt, makes
//	    a new connection.
//	P6  A length from the network never causes the allocation of more than 1 MiB before the bytes
//	    arrive.
//	P7  Up and Down of one peer alternate (Down may repeat while attempts fail) and are called from
//	    one goroutine. Each Up has its Down before Close returns. After Close no goroutine is left,
//	    and no method of the Handler is called.
//
//	P8  No frame and no checkpoint is received, the Handler judges no hello, and no connection
//	    of a peer is replaced, before the caller has proved that it is the peer: by
//	    Config.Secret, by a certificate that names the peer, or because the member at the peer's
//	    address (also a former or further one, see SetPeers and SetFurther) confirms that the
//	    connection is its own. A peer without an address here must prove that it is a guest
//	    (guest.go); otherwise the Handler is told that the peer has proved nothing.
//	P9  Callers that have not proved this ("unproven") cost little, and do not keep members out. Each
//	    costs at most 256 KiB and two goroutines for 5 s (10 s if it is refused). At most 8 TLS
//	    handshakes compute at a time, 2 of one host. There are at most 256 such callers, fewer if file
//	    descriptors are short; a further caller takes the place of the longest waiting caller of the
//	    host that has most. At most two questions at a time are about callers of one host that name
//	    the same member.
//
// How a caller proves that it is the peer (P8):
//
//   - By address: the called member dials the configured address of the member that the hello
//     names, and asks whether it is making the connection with this nonce. A member that a reconfig
//     moves is also asked at its former address, until it has answered at the new address, and
//     each member that does not answer there at its further addresses: whoever gets one of them can
//     pass for the member, unless there is a secret or TLS.
//   - By secret: the caller answers the challenge first, so a stranger gets nothing that is
//     computed from the secret. A member that only prefers the secret falls back to the address.
//   - By certificate: both sides verify the other's chain, and compare the certificate with the
//     host in the other's server line. URIs of scheme gozkd must name the member, and the ensemble
//     if the configuration names one. For a certificate with only a host, the called member also
//     asks at the member's address, over TLS. Session tickets are disabled: a resumed session would
//     skip the revocation lists.
//   - By both: a caller with the secret or such a certificate is also asked for at its address if
//     its connection would replace another. A copy of the member's machine has them, too.
//
// docs/reference/formats.md describes the format, docs/adr/0007-peer-authentication.md the reasons.
//
// Goroutines: a single goroutine accepts connections. Each peer has a goroutine that dials and
// writes and, while connected, another, which reads the heartbeats of the other side. Each accepted
// connection has two, which read and send heartbeats. All methods may be called from any goroutine.
// SetPeers, Send and Status may be called from methods of the Handler; Close must not, since it
// waits for them.
package peer
