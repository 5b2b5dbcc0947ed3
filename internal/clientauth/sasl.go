package clientauth

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/sasl"
)

// ErrNoSASL means that the server answered without a token: it has no SASL configured, or it lets
// clients continue whose authentication has failed (allowSaslFailedClients).
var ErrNoSASL = errors.New("the server gave no identity: it has no SASL configured, or ignores that the authentication failed")

// RefusedError is the error of an exchange that the server has refused.
type RefusedError struct{ Code proto.ErrCode }

// Error returns the code, and says where to find the reason.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the server refused the credentials (%v); its log has the reason", e.Code)
}

// Is makes every RefusedError a proto.ErrAuthFailed.
func (e *RefusedError) Is(target error) bool {
	return target == proto.ErrAuthFailed || target == e.Code
}

const (
	// maxSteps bounds the requests of an exchange.
	maxSteps = 16
	// maxToken bounds the tokens of both sides in bytes. A ticket with the groups of a user has
	// some tens of KiB.
	maxToken = 128 << 10

	requestHeader = 4 + 4 // xid, op code
	replyHeader   = 4 + 8 + 4
)

// SASL runs the exchange right after the server has given the connection a session. No other
// request may be under way.
func SASL(conn io.ReadWriter, client sasl.Client, address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	exchange, err := client.New(host)
	if err != nil {
		return err
	}
	var challenge []byte
	for xid := uint32(1); xid <= maxSteps; xid++ {
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
			return ErrNoSASL
		}
	}
	return fmt.Errorf("the exchange has no end after %d requests", maxSteps)
}

// writeToken sends a GetSASLRequest. A nil token is sent as an empty one: servers close the
// connection for a missing token.
func writeToken(w io.Writer, xid uint32, token []byte) error {
	if len(token) > maxToken {
		return fmt.Errorf("a token of %d bytes is too long", len(token))
	}
	b := make([]byte, 0, 4+requestHeader+4+len(token))
	b = binary.BigEndian.AppendUint32(b, uint32(requestHeader+4+len(token)))
	b = binary.BigEndian.AppendUint32(b, xid)
	b = binary.BigEndian.AppendUint32(b, uint32(proto.OpSASL))
	b = binary.BigEndian.AppendUint32(b, uint32(len(token)))
	_, err := w.Write(append(b, token...))
	return err
}

// readToken reads the reply and returns its token, which may be nil.
func readToken(r io.Reader, xid uint32) (token []byte, err error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the server closed the connection without an answer")
		}
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n < replyHeader || n > replyHeader+4+maxToken {
		return nil, fmt.Errorf("a reply of %d bytes", int32(n))
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	if got := binary.BigEndian.Uint32(b); got != xid {
		return nil, fmt.Errorf("a reply to request %d instead of %d", int32(got), xid)
	}
	if code := proto.ErrCode(int32(binary.BigEndian.Uint32(b[12:]))); code != proto.OK {
		return nil, &RefusedError{code}
	}
	if b = b[replyHeader:]; len(b) < 4 {
		return nil, io.ErrUnexpectedEOF
	}
	length := int32(binary.BigEndian.Uint32(b))
	switch b = b[4:]; {
	case length < 0:
		return nil, nil
	case int(length) != len(b):
		return nil, fmt.Errorf("a token of %d bytes in a reply with %d", length, len(b))
	}
	return b, nil
}
