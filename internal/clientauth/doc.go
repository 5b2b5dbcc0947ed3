// Package clientauth performs the TLS handshake of a client's new connection.
package clientauth
