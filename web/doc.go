// Package web serves znodes over HTTP: ZooKeeper's old REST interface (/znodes/v1, /sessions/v1), a
// newer one (/znodes/v2, /identity/v2), and an explorer for browsers (/ui/). It opens no port: the
// program that embeds the server mounts the handler. docs/guide/rest.md has the roles.
//
// Invariants:
//
//	W1  A request reads and writes znodes only through a client session with its caller's identities,
//	    so the server's ACLs decide. Facts about the server need a role instead.
//	W2  A caller without a login is anonymous and only served on this machine: the connection, the
//	    Host header and the lack of proxy headers must say so. Everybody else must log in, as an
//	    identity that Options give a role, or as the superuser.
//	W3  A write needs a role that may write; by default nobody has one. Administrators alone end
//	    sessions and see addresses and sessions of others, unless they are on this machine.
//	W4  A page of another origin cannot cause a write, or read anything: no CORS headers, the standard
//	    library's cross-origin protection, a list of host names, a cookie with SameSite=Strict.
//	W5  The content of a znode is never part of HTML: the explorer gets JSON or bytes and creates text
//	    nodes; answers with bytes have nosniff and, unless asked for by the explorer's script, a
//	    Content-Disposition: attachment; the policy allows scripts, styles and fonts of the origin only.
//	W6  Every body, list, search, stream, session and login attempt of a caller has a bound, and the
//	    sum over all callers too. A caller is an identity, from any address; anonymous callers are a
//	    network.
//	W7  A stream of events misses nothing between two ids, or says reset.
//	W8  Every write and every login, refused ones too, is an event of the audit log. What a bound refuses
//	    (429) is not: it would fill the log.
//
// Below internal, access makes an identity and a role of a request, call has a client session per
// identity, in the process, restv1, restv2 and explore have the handlers, and locks finds holders,
// queues and cycles. static is the explorer: HTML, CSS and ES modules, without a build step.
package web
