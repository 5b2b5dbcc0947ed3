// Package clientauth performs the TLS handshake of a client's new connection, and the SASL exchange
// that precedes the first request of a session.
//
// The caller bounds the time: TLS ends with its ctx, SASL with the deadline of the connection.
package clientauth
