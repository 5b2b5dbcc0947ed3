// Package zklearner follows a running ZooKeeper ensemble, version 3.4 to 3.9, in memory. It
// connects to the leader's port for other servers as an observer that no server line names: the
// leader sends the tree and then each committed transaction, and the source needs no other
// configuration. docs/adr/0011-state-moves-while-zookeeper-runs.md has the rules.
//
//   - G1 the source does not depend on a learner: its number is none that a server can have, so its
//     answers count for no election and no commit, and it claims no epoch and no session;
//   - G2 a [Replica] equals the state of the source after one of its transactions. Each digest that
//     the leader sends is compared, and a difference or a gap ends [Learner.Run];
//   - G3 a replica is settled if a quorum has the leader's history up to its last transaction.
//     Until the leader has confirmed that, another leader may undo it; the replica then begins
//     again;
//   - G4 nothing that is received is trusted: what is allocated is bounded by the bytes that
//     arrived, and a packet by [MaxPacket].
package zklearner
