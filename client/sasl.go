package client

import (
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/sasl"
)

// errNoSASL means that the server answered without a token: it has no SASL configured, or it lets
// clients continue whose authentication has failed (allowSaslFailedClients).
var errNoSASL = errors.New("the server gave no identity: it has no SASL configured, or ignores that the authentication failed")

// saslRefusal is a proto.ErrAuthFailed, whatever code the server has refused the exchange with.
type saslRefusal struct{ error }

func (e saslRefusal) Unwrap() error      { return e.error }
func (saslRefusal) Is(target error) bool { return target == proto.ErrAuthFailed }

const (
	// maxSteps bounds the requests of an exchange.
	maxSteps = 16
	// maxToken bounds the tokens of both sides in bytes. A ticket with groups has some tens of KiB.
	maxToken = 128 << 10
)

// exchangeSASL runs the exchange right after the server has given the connection a session. No
// other request may be under way.
func (l *link) exchangeSASL(client sasl.Client) error {
	host, _, err := net.SplitHostPort(l.address)
	if err != nil {
		return err
	}
	exchange, err := client.New(host)
	if err != nil {
		return err
	}
	var challenge []byte
	for xid := int32(1); xid <= maxSteps; xid++ {
		token, done, err := exchange.Step(challenge)
		if err != nil || done && token == nil {
			return err
		}
		challenge, err = l.exchangeToken(xid, token)
		if err != nil || done {
			return err
		}
		if challenge == nil {
			return errNoSASL
		}
	}
	return fmt.Errorf("the exchange has no end after %d requests", maxSteps)
}

// exchangeToken sends a token and returns the token of the reply, which may be nil. A nil token is
// sent as an empty one: servers close the connection for a missing token.
func (l *link) exchangeToken(xid int32, token []byte) ([]byte, error) {
	if len(token) > maxToken {
		return nil, fmt.Errorf("a token of %d bytes is too long", len(token))
	}
	body := func(b []byte) []byte { return append(jute.AppendInt(b, int32(len(token))), token...) }
	if err := l.write(frame(xid, proto.OpSASL, body)); err != nil {
		return nil, err
	}
	reply, err := readFrame(l.in, proto.ReplyHeaderBytes+4+maxToken)
	switch {
	case errors.Is(err, io.EOF):
		return nil, errors.New("the server closed the connection without an answer")
	case err != nil:
		return nil, err
	}
	d := jute.NewDecoder(reply)
	var h proto.ReplyHeader
	switch h.Decode(&d); {
	case d.Err() != nil:
		return nil, d.Err()
	case h.Xid != xid:
		return nil, fmt.Errorf("a reply to request %d instead of %d", h.Xid, xid)
	case h.Err != proto.OK:
		return nil, saslRefusal{fmt.Errorf("the server refused the credentials (%w); its log has the reason", h.Err)}
	}
	challenge := d.Buffer()
	if d.Err() == nil && d.Remaining() > 0 {
		return nil, fmt.Errorf("%d bytes after the token of a reply", d.Remaining())
	}
	return challenge, d.Err()
}
