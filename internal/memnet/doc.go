// Package memnet is a network within the process: listeners, connections, and links between hosts
// that can be cut, delayed and torn. It connects servers and clients of one process, and lets tests
// simulate failures of a network. It does not model packets, bandwidth or the loss of single bytes,
// and Dial takes no time.
//
// Connections behave like TCP connections:
//
//   - M1. Bytes arrive in order and once, or the connection breaks. A connection that is not broken
//     loses nothing.
//   - M2. A cut link holds all bytes that were not read yet, and the end of the stream after a
//     Close, and delivers them when the link is mended.
//   - M3. A writer waits when 256 KiB are unread, and continues when half of them were read. This
//     bounds the memory.
//   - M4. The bytes of a Write stay together, even if the Write had to wait.
//   - M5. After Close the other end reads all that was sent, then io.EOF. Its writes fail with
//     EPIPE at once, without latency, or on a cut link after the link was mended.
//   - M6. Tearing a connection fails both ends at once with ECONNRESET, and discards all unread
//     bytes.
//   - M7. After a deadline, waiting and later calls fail with os.ErrDeadlineExceeded until the
//     deadline is moved. A Write that fails returns how many bytes it has sent, and these arrive.
//   - M8. Errors are those of package net: net.ErrClosed after a Close of the same end, and a
//     *net.OpError around all errors except io.EOF.
//
// Waiting for the network is durably blocking in the sense of testing/synctest, so time passes in a
// bubble. A Network and its users must then belong to one bubble. The package has no goroutines,
// and timers only for deadlines, latency and delays that somebody waits for.
//
// Everything is safe for concurrent use.
package memnet
