// Package kill kills a real gozkd with SIGKILL again and again, under load from several clients,
// and holds what the restarted server says against what its clients were told.
//
// It is a black box: processes, a data directory and the wire. What must hold, whatever moment the
// process died at:
//
//   - A write that was acknowledged is there until an acknowledged write changes it. One that was not is there once or
//     not at all, and stays as it was first seen. Nothing is there that nobody sent.
//   - Of the requests pipelined on one connection those that were carried out are a prefix.
//   - A version counts the writes that were carried out. Sequence numbers are never given twice and rise in the order of
//     each client's requests, whatever was deleted in between. A multi is carried out in full or not at all.
//   - Ephemerals are kept while their session lives, with their owner, and go with it all at once.
//   - No zxid is given twice, each is higher than all that were acknowledged when its request was sent, and no client ever
//     sees a lower one, on whatever connection.
//
// Between two kills the load rests for a moment: a client with a new session reads everything,
// settles which of the writes without an answer were carried out, and compares. From there on they
// count like acknowledged ones.
//
// KILLS sets the number of rounds and KILL_SEED the seed of everything that is drawn. The moment at
// which a signal hits is the machine's, so the same seed gives the same plan and not the same run.
// With go test -artifacts the data directory and the server's log are kept.
package kill
