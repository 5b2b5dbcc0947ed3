// Package server is a ZooKeeper server for programs in Go: one server, or a member of an ensemble.
// docs/guide/embedding.md has the contract of each call, and docs/internals/server.md how it works.
//
// A program that embeds a server needs Config, New, and these methods of Server:
//
//	life      Start, Ready, Err, Close, Abort, Reload
//	clients   Addr, SecureAddr, ConnectString, Dial, Dialer
//	state     Status, Facts, Walk
//	changes   Load, Multi, SetACL, ExpireSession, HandOver
//
// Facts serves packages admin and metrics and the four-letter words. The gozkd command and
// package web also need the following, which are not covered by the promise of compatibility of
// version 1:
//
//	archive   Backups, for backups and an archive of the log
//	callers   Audit, DialAs, Identities (see package identity)
//	words     ResetConnectionStats, SetTraceMask and TraceMask of Facts
//	time      CatchUp, ExpireDue, MoveClock
package server
