// Package sasl proves identities on connections by SASL mechanisms, as ZooKeeper does with
// operation 102. It has both sides of an exchange as interfaces, the mechanism DIGEST-MD5, and the
// JAAS files in which ZooKeeper keeps names and passwords. Kerberos is in package sasl/kerberos.
//
// An exchange only authenticates: no mechanism signs or encrypts what follows it. Use it over TLS
// where others can read or change the traffic.
//
// No error of this package contains a password or a hash of one.
package sasl

import "errors"

// Server starts exchanges, one for each connection. Its methods may be called from several
// goroutines.
type Server interface {
	New() Exchange
}

// Exchange is the server's side of one exchange. It is used by one goroutine at a time.
type Exchange interface {
	// Step takes the next token of the client, which is not nil but may be empty, and returns the
	// token to reply with. Step must not keep token. With done the client has proved to be id, which
	// has no scheme, and reply is the last one; nil is sent as a null token. After done or an error
	// Step must not be called again. The client must not be told the reason of an error.
	Step(token []byte) (reply []byte, id string, done bool, err error)
}

// ErrRefused is wrapped by the errors of Exchange.Step: the client has not proved an identity.
var ErrRefused = errors.New("sasl: authentication refused")

// Client starts exchanges, one for each connection. Its methods may be called from several
// goroutines.
type Client interface {
	// New starts an exchange with the server that was dialed as host, a name or an address without a
	// port.
	New(host string) (ClientExchange, error)
}

// ClientExchange is the client's side of one exchange. It is used by one goroutine at a time.
type ClientExchange interface {
	// Step takes the next token of the server, nil at the beginning, and returns the token to send.
	// With done the server needs no further token after this one, and the identity counts as soon as
	// the server has answered it without an error. If reply is nil, nothing is to be sent, which
	// happens only with done; an empty reply is sent.
	Step(token []byte) (reply []byte, done bool, err error)
}
