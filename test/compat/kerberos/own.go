package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/rawclient"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/sasl"
)

// whoami authenticates a connection with our client side and returns its identities, one on each
// line.
func whoami(ctx context.Context, addr string, client sasl.Client) (string, error) {
	const patience = 20 * time.Second
	conn, err := rawclient.Dial(ctx, addr)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }() // nothing is left to lose
	if _, err := conn.Handshake(&proto.ConnectRequest{TimeoutMs: 10000}, patience); err != nil {
		return "", err
	}
	// call sends a request and returns the body of the reply, and the error code in its header.
	xid := int32(0)
	call := func(op proto.OpCode, body []byte) (*jute.Decoder, proto.ErrCode, error) {
		xid++
		if err := conn.Write(rawclient.AppendRequest(nil, xid, op, body), patience); err != nil {
			return nil, 0, err
		}
		frame, err := conn.ReadFrame(patience)
		if err != nil {
			return nil, 0, err
		}
		d := jute.NewDecoder(frame)
		var h proto.ReplyHeader
		h.Decode(&d)
		return &d, h.Err, d.Err()
	}
	exchange, err := client.New("localhost")
	if err != nil {
		return "", err
	}
	var token []byte
	for done := false; !done; {
		if token, done, err = exchange.Step(token); err != nil {
			return "", err
		}
		d, code, err := call(proto.OpSASL, (&proto.TokenRecord{Token: token}).Append(nil))
		if err == nil && code != 0 {
			err = code
		}
		if err != nil {
			return "", fmt.Errorf("sasl: %w", err)
		}
		var reply proto.TokenRecord
		reply.Decode(d)
		if token = reply.Token; token == nil && !done {
			return "", fmt.Errorf("sasl: the server sent no token")
		}
	}
	d, code, err := call(proto.OpWhoAmI, nil)
	if err == nil && code != 0 {
		err = code
	}
	if err != nil {
		return "", fmt.Errorf("whoAmI: %w", err)
	}
	var ids proto.WhoAmIResponse
	ids.Decode(d)
	var b strings.Builder
	for _, id := range ids.IDs {
		fmt.Fprintf(&b, "id %s:%s\n", id.Scheme, id.ID)
	}
	return b.String(), d.Err()
}
