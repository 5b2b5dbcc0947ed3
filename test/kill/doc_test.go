// Package kill kills a real gozkd with SIGKILL again and again, under load from several clients,
// and compares the state of the restarted server with the answers that the clients received.
//
// It is a black-box test: it sees processes, a data directory and the wire. Whenever the process
// dies, the following must hold:
//
//   - An acknowledged write is there until another write changes it. A write without an answer is
//     there once or not at all, and stays as it was first seen. Nothing is there that nobody sent.
//   - Of the requests pipelined on one connection, those that were carried out are a prefix.
//   - A version counts the writes that were carried out. Sequence numbers are never reused and rise
//     in the order of each client's requests, whatever was deleted in between. A multi is carried
//     out in full or not at all.
//   - Ephemerals exist while their session lives, with their owner, and disappear with it all at
//     once.
//   - No zxid is used twice. Each exceeds all zxids that were acknowledged when its request was
//     sent, and no client ever sees a lower zxid than before, on whatever connection.
//
// Between two kills the load pauses: a client with a new session reads everything, finds out which
// of the writes without an answer were carried out, and compares. From then on those count as
// acknowledged.
//
// TestPause stops the process for a while instead, and checks the sessions.
//
// KILLS sets the number of rounds and KILL_SEED the seed of all random choices. The moment at which
// a signal hits depends on the machine, so a seed repeats the plan of a run but not the run.
// With go test -artifacts the data directory and the server's log are kept.
package kill
