// Package liveness decides which sessions are alive, and when this server was last in touch with a
// leader. It reads no clock and knows no connection, tree or log: the server passes in what it
// heard and when, and carries out the decisions. Expiry is for the sessions that all servers know,
// Locals for those that only this server knows.
//
// # When a session expires
//
// Every server keeps an Expiry. The leader's Expiry decides, twice a tick. A session expires only
// if all of these hold:
//
//   - The leader can commit (Passes.CanCommit). If requests wait and nothing was applied for too
//     long, a client that waits for a write may not be read, and a client that gives up cannot
//     re-attach. Nobody expires, which would turn a slow disk into a loss of sessions. Afterwards
//     every session has a full timeout (ResetAll), as after an election.
//   - The leader's process ran. A pass that is late by more than an eighth of a tick finds sockets
//     that nobody has read. GiveBack moves every session by the lost time. The first late pass does
//     not judge; later passes do even if they are late, too: dead sessions must end also on an
//     overloaded machine.
//   - The session's server says so. Other servers report touches twice a tick ("this session, this
//     many ms ago"). For a session that is attached elsewhere (Session.Server) the leader waits for
//     a report that was made after the timeout was over. The leader's answers carry its time, and
//     the next report repeats that time, so a report that was under way for long proves nothing
//     new.
//   - A silent server may have heard its clients until its next report was due. So if a server does
//     not report, its sessions last until their timeout and one more tick have passed since its
//     last report. The first report of its next process, which repeats no time, counts as a touch
//     for the clients of the previous process (Reported), once.
//
// The time of a pause counts for Contact, also in a late pass. The others have gone on meanwhile:
// the leader has not heard this server, and the state that clients read is as old as the pause is
// long. So a pause of more than syncLimit ticks ends as a loss of contact does, with connections
// closed and local sessions forgotten, unless a confirmation that waited in the socket is read
// first. ZooKeeper's leader closes the connection of such a follower, with the same effect.
//
// A new leader gives every session a full timeout (Lead), because the previous leader's record of
// sessions is lost.
//
// A report covers everything since the last report that the leader has confirmed, and a tick before
// it. A server whose own pass is late reports only in the next pass. A server that is cut off
// answers pings for syncLimit ticks; if it dies within that time, its clients have up to that much
// less than their timeout.
//
// A session also counts as heard when its client asks for it again with the right password
// (heardOwner in package server), and while its connection is not read because the server handles
// earlier requests. While the server waits for the client to take its replies, the session counts
// as heard whenever the client takes some of them or its socket shows that it is alive. While
// requests wait for a budget, the client counts as heard from the bytes that come. The rules are in
// package link: SetHandling, writeRest, NoteProgress, ReadAhead.
package liveness
