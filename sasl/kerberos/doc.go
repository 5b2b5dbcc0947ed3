// Package kerberos is the mechanism GSSAPI of operation 102, on both sides: NewServer accepts
// clients as ZooKeeper's server does, and NewClient authenticates with such a server. Tickets, keys
// and ciphers are those of gokrb5, and the exchange around them is here:
//
//	client                                server
//	AP-REQ                         ->
//	                               <-     AP-REP, if the client asks for mutual authentication
//	empty                          ->     only after an AP-REP
//	                               <-     wrap token: the security layers on offer, which is "none"
//	wrap token: the layer "none"   ->
//
// Only the AES encryption types are allowed (17 to 20), as in Java without allow_weak_crypto.
//
// gokrb5 decodes messages, encrypts and decrypts, interprets krb5.conf, keytabs and ticket caches,
// and talks to KDCs. Everything that decides about a stranger is in this package: gokrb5 panics on
// short input, its errors contain keytabs, it has one replay cache per process, which lets two
// requests at once pass, and it takes the realm of a client from the authenticator, without
// comparing it with the ticket.
//
// Invariants:
//
//	K1  The identity is made of the client's name and realm in the ticket, which only the KDC and
//	    the server can make.
//	K2  An authenticator is accepted once. A restart forgets this, as Java's does.
//	K3  A principal has an id only if its name can be told from all others: no part contains a
//	    separator or a character that does not print (principal.Join).
//	K4  No key, ticket or keytab is in an error or a log line.
//	K5  Encryption types other than AES are refused, in keytabs, tickets and requests.
package kerberos
