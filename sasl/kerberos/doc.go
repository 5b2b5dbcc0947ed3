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
// What a client sends before it has proved who it is goes through checks of this package before
// gokrb5 sees it, because gokrb5 indexes into short input. The acceptor does not use gokrb5's
// package service: its replay cache belongs to the process, and its identity is the one that the
// client claims in the authenticator, of which only the name is compared with the ticket.
package kerberos
