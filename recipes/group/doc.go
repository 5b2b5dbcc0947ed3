// Package group has groups of processes, and znodes that are kept in existence. A Group has the
// znodes of Curator's GroupMember, a Party those of kazoo's Party or ShallowParty. A
// PersistentZnode is Curator's PersistentNode or PersistentTtlNode.
//
// When the session ends, members and persistent znodes are created again in the next one.
//
// Invariants:
//   - P1 After every failure a PersistentZnode exists again, under the same name, with the data
//     that were set last.
//   - P2 It exists once. Another session's znode is never written, and is deleted only once, when a
//     member joins.
//   - P3 When Close or Leave has returned nil, the znode is gone, even if an answer was lost.
//   - P4 Two members that join under one id settle: the later one is the member, and the other is
//     it again after the later one has left.
//   - P5 Soon after the last failure, Members and a View show the present members, and every
//     process that joined and did not leave is one.
//
// docs/internals/recipes.md says why they hold, and what they cost.
package group
