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
// This package checks the lengths of a stranger's input before gokrb5 parses it, because gokrb5 indexes
// into short input. The acceptor does not use gokrb5's package service, which has one replay cache per
// process, and which takes the realm of a client from the authenticator, without comparing it with the
// ticket.
package kerberos
