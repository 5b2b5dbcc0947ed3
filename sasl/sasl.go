// Package sasl proves identities on connections by SASL mechanisms, as ZooKeeper does with
// operation 102. It has both sides of an exchange as interfaces, the mechanism DIGEST-MD5, and the
// JAAS files in which ZooKeeper keeps names and passwords. Kerberos is in package sasl/kerberos.
//
// An exchange only authenticates: no mechanism signs or encrypts the requests that follow. Use TLS
// where others can read or change the traffic.
//
// No error of this package contains a password or the hash of a password.
package sasl

import "errors"

// Server starts an exchange for each connection. Its methods may be called from several goroutines.
type Server interface {
	New() Exchange
}

// Exchange is the server's side of an exchange. Only one goroutine may use it at a time.
type Exchange interface {
	// Step takes the client's next token, which is not nil but may be empty, and returns the token
	// of the reply; nil stands for a null token. Step must not retain token. If done is true, the
	// client has proved to be id (without a scheme), and the reply ends the exchange. After done or
	// an error Step must not be called again. The reason of an error must not be sent to the
	// client.
	Step(token []byte) (reply []byte, id string, done bool, err error)
}

// ErrRefused is wrapped by the errors of Exchange.Step: the client has not proved an identity.
var ErrRefused = errors.New("sasl: authentication refused")

// Client starts an exchange for each connection. Its methods may be called from several goroutines.
type Client interface {
	// New starts an exchange with the server at host, a name or an address without a port.
	New(host string) (ClientExchange, error)
}

// ClientExchange is the client's side of an exchange. Only one goroutine may use it at a time.
type ClientExchange interface {
	// Step takes the next token of the server, nil at the beginning, and returns the token to send.
	// If done is true, this token is the last: the client is authenticated when the server has
	// answered it without an error. A nil reply, which comes only with done, must not be sent; an
	// empty reply must be sent.
	Step(token []byte) (reply []byte, done bool, err error)
}
