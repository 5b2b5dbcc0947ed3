// Package faultproxy stands between a ZooKeeper server and its clients, and makes go wrong on request what otherwise goes
// wrong when nobody looks: a request fails, or is late; the answer to a request that was carried out is lost; a connection
// breaks; server and clients don't hear of each other for a while.
//
// A [Gate] is the net.Listener that the server listens on. Its connections follow the frames of the client protocol, in Read
// and in Write and without goroutines of their own, and carry out the [Fault] of each rule that is armed in [Rules].
//
// It is no proxy and no server. It knows lengths, headers and paths, and looks at nothing else.
//
// Invariants:
//   - F1 without a matching rule every byte passes, in order and unchanged, whatever the bytes are;
//   - F2 the client gets one answer to each request, in the order in which the server gives them, except where a rule says
//     otherwise;
//   - F3 no length sizes an allocation: memory is held for bytes that came, and a frame is held back only as far as a rule
//     must see it to decide;
//   - F4 whatever waits ends with the deadline or the Close of its connection, and is durably blocked in the sense of
//     testing/synctest.
package faultproxy
