// Package group has znodes that are there as long as a process wants them to be, and groups of processes that stand on them: who is a
// member, since when, and with what payload. A Group has the znodes of Curator's GroupMember, a Party those of kazoo's Party or ShallowParty, and a
// Node is Curator's PersistentNode and PersistentTtlNode.
//
// Invariants:
//   - P1 a Node is there again after every trouble, under the same name, with the data that were set last;
//   - P2 there is one of it: what another session has is not written, and deleted only to take its place once, when a member joins;
//   - P3 when Close or Leave has returned nil, the znode is gone, also if an answer was lost;
//   - P4 two who join under one id come to rest: who came last is the member, and the other is it again when that one has gone;
//   - P5 when trouble is over, what Members and a View show is soon who is there, and everybody is there who did not leave.
//
// docs/internals/recipes.md says why they hold, and what it costs.
package group
