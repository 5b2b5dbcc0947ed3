package client

import (
	"encoding/binary"
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

// saslRefusal is the error of an exchange that the server has refused.
type saslRefusal struct{ code proto.ErrCode }

// Error returns the code, and says where to find the reason.
func (e *saslRefusal) Error() string {
	return fmt.Sprintf("the server refused the credentials (%v); its log has the reason", e.code)
}

// Is makes every saslRefusal a proto.ErrAuthFailed.
func (e *saslRefusal) Is(target error) bool {
	return target == proto.ErrAuthFailed || target == e.code
}

const (
	// maxSteps bounds the requests of an exchange.
	maxSteps = 16
	// maxToken bounds the tokens of both sides in bytes. A ticket with the groups of a user has
	// some tens of KiB.
	maxToken = 128 << 10
)

// exchangeSASL runs the exchange right after the server has given the connection a session. No
// other request may be under way. The deadline of the connection bounds the time.
func exchangeSASL(conn io.ReadWriter, client sasl.Client, address string) error {
	host, _, err := net.SplitHostPort(address)
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
		if err := writeToken(conn, xid, token); err != nil {
			return err
		}
		challenge, err = readToken(conn, xid)
		if err != nil || done {
			return err
		}
		if challenge == nil {
			return errNoSASL
		}
	}
	return fmt.Errorf("the exchange has no end after %d requests", maxSteps)
}

// writeToken sends a GetSASLRequest. A nil token is sent as an empty one: servers close the
// connection for a missing token.
func writeToken(w io.Writer, xid int32, token []byte) error {
	if len(token) > maxToken {
		return fmt.Errorf("a token of %d bytes is too long", len(token))
	}
	b := jute.AppendInt(nil, int32(proto.RequestHeaderBytes+4+len(token)))
	b = (&proto.RequestHeader{Xid: xid, Op: proto.OpSASL}).Append(b)
	_, err := w.Write(append(jute.AppendInt(b, int32(len(token))), token...))
	return err
}

// readToken reads the reply and returns its token, which may be nil.
func readToken(r io.Reader, xid int32) (token []byte, err error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the server closed the connection without an answer")
		}
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n < proto.ReplyHeaderBytes || n > proto.ReplyHeaderBytes+4+maxToken {
		return nil, fmt.Errorf("a reply of %d bytes", int32(n))
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	d := jute.NewDecoder(b)
	var h proto.ReplyHeader
	switch h.Decode(&d); {
	case h.Xid != xid:
		return nil, fmt.Errorf("a reply to request %d instead of %d", h.Xid, xid)
	case h.Err != proto.OK:
		return nil, &saslRefusal{h.Err}
	}
	if d.Remaining() < 4 {
		return nil, io.ErrUnexpectedEOF
	}
	length := int(d.Int())
	switch token = d.Rest(); {
	case length < 0:
		return nil, nil
	case length != len(token):
		return nil, fmt.Errorf("a token of %d bytes in a reply with %d", length, len(token))
	}
	return token, nil
}
