// Package group has groups of processes, and znodes that are kept in existence. A Group has the
// znodes of Curator's GroupMember, a Party those of kazoo's Party or ShallowParty. A
// PersistentZnode is Curator's PersistentNode or PersistentTtlNode.
//
// When the session ends, members and persistent znodes are created again in the next session.
//
// Invariants:
//   - P1 After every failure a PersistentZnode exists again, under the same name, with the data
//     that were set last.
//   - P2 A PersistentZnode exists once. Another session's znode is never written, and is deleted
//     only once, when a member joins.
//   - P3 When Close has returned nil, the znode is gone, even if an answer was lost.
//   - P4 Two members that join under one id settle: the later is the member, and the other is the
//     member again after the later has left.
//   - P5 Soon after the last failure, Members and a View show the present members: all processes
//     that joined and did not leave.
package group
