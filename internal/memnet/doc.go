// Package memnet is a network within the process: listeners, connections, and links between hosts that can be cut,
// delayed and torn. It is for servers and clients that are in one process, and for tests of what they do when the network
// fails. It is no model of a real network: no packets, no bandwidth, no loss of single bytes, and Dial takes no time.
//
// Connections behave as TCP's do:
//
//   - M1. Bytes arrive in order and once, or the connection breaks. Nothing is lost on a connection that goes on.
//   - M2. A cut link holds what was not read yet, the news of a Close too, and lets all of it go on when it is mended.
//   - M3. A writer waits when 256 KiB are under way, and goes on when half of that was read. So memory is bounded.
//   - M4. Writes don't mix: the bytes of one Write stay together, even if it had to wait.
//   - M5. Close gives the other end what was sent, then io.EOF. The other end's writes fail with EPIPE, at once and not
//     after the latency, or on a cut link once that is mended.
//   - M6. A connection that was torn fails on both ends at once with ECONNRESET, and what was under way on it is lost.
//   - M7. A deadline that has passed fails calls that wait and those that come, with os.ErrDeadlineExceeded, until it is moved.
//     A Write that fails says how many bytes are on their way, and those arrive.
//   - M8. Errors are those of package net: net.ErrClosed after one's own Close, and *net.OpError around all but io.EOF.
//
// Whoever waits for the network is durably blocked in the sense of testing/synctest, so that time passes in a bubble. A
// Network and its users then belong to one bubble. There are no goroutines here, and no timers but for deadlines, latency and
// delays that somebody waits for.
//
// Everything is safe for concurrent use.
package memnet
