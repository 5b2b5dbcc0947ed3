// Package clientauth holds what a client does on a new connection before its first request: the TLS
// handshake, and the SASL exchange in the session that the server has given.
//
// The caller bounds the time: TLS ends with its ctx, SASL with the deadline of the connection.
package clientauth
