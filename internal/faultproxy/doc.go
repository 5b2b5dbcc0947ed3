// Package faultproxy sits between a ZooKeeper server and its clients and injects faults: a request
// fails or is delayed, the reply to an executed request is lost, a connection breaks, or no bytes
// pass for a while.
//
// The server listens on a [Gate], a net.Listener. The connections of a Gate parse the frames of the
// client protocol inside Read and Write, without goroutines of their own, and apply the first
// [Fault] in [Rules] that matches a request. They look at lengths, headers and paths only.
//
// Invariants:
//   - F1 without a matching rule every byte passes, in order and unchanged, whatever the bytes are;
//   - F2 the client gets one reply to each request, in the server's order, unless a rule says
//     otherwise;
//   - F3 no length in a frame sizes an allocation: memory is used only for bytes that have
//     arrived, and a frame is held back only as far as a rule needs it to decide;
//   - F4 every wait ends at the deadline or at Close of its connection, and is durably blocked
//     in the sense of testing/synctest.
package faultproxy
