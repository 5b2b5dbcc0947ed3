// Package web serves znodes over HTTP: ZooKeeper's old REST interface (/znodes/v1, /sessions/v1), a newer
// one (/znodes/v2, /identity/v2), and an explorer for browsers (/ui/). It opens no port: the program that
// embeds the server mounts the handler.
//
// Callers on this machine may read without a login. All others must log in as an identity that Options
// give a role. A request has a client session with the identities of its caller, so the ACLs of znodes
// hold. docs/internals/web.md has the invariants and the requests.
package web
