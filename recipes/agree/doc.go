// Package agree lets processes agree on a division of work: the Partitioner divides a set among its
// members, as kazoo's SetPartitioner does. When a member's session ends, its share is lost.
//
// Invariants:
//   - A1 No part of a set is in two shares whose contexts are alive.
//   - A2 When the members have not changed for long enough, and have released what they had to,
//     every part is in a share.
package agree
