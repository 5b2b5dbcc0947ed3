package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/sasl"
	"github.com/gozkd/gozkd/server/internal/link"
	"github.com/gozkd/gozkd/server/internal/meter"
)

// These bound an exchange besides Config.HandshakeTimeout, which its last token must keep.
const (
	maxSASLTokens = 16
	maxSASLToken  = 128 << 10 // bytes; a Kerberos ticket may have 64 KiB
)

// saslExchange is the SASL exchange of a connection. It is owned by the goroutine that reads the
// connection. A connection has at most one exchange.
type saslExchange struct {
	mechanism sasl.Exchange // nil: over
	begun     time.Time
	tokens    int
	next      *saslStep // what the mechanism has made of the request in front; nil: nothing yet
}

// saslStep is the result of a step.
type saslStep struct {
	reply []byte
	id    string
	done  bool
	err   error
}

// answerSASL answers a request of a SASL exchange. The mechanism may take milliseconds, so
// answerSASL returns pauseSASL first: then stepSASL must be called without locks.
func (c *conn) answerSASL(h proto.RequestHeader, d *jute.Decoder, now time.Time, t *meter.BatchStats) (pause, error) {
	var r proto.TokenRecord
	if r.Decode(d); d.Err() != nil || r.Token == nil {
		return pauseNone, errors.New("sasl request without a token")
	}
	auth := &c.server.live.Load().Auth
	switch {
	case c.sasl == nil && auth.SASL == nil: // as a ZooKeeper without a SASL configuration
		c.replySASL(h, proto.OK, nil, now, t)
		return pauseNone, nil
	case c.sasl == nil || c.sasl.mechanism != nil && c.sasl.next == nil:
		return pauseSASL, nil
	}
	step := c.sasl.next
	if c.sasl.next = nil; step == nil {
		step = &saslStep{err: errors.New("the exchange of this connection is over")}
	}
	if step.err == nil && step.done && !c.addIDs(c.server.saslIDs(step.id)...) {
		step.err = fmt.Errorf("the identities of the connection would have more than %d bytes", maxIDBytes)
	}
	if step.err == nil {
		if step.done {
			c.logger().Debug("authenticated", "scheme", schemeSASL, "id", printable.Text(printable.Shortened(step.id, 64)))
			c.server.trail.Auth(c, schemeSASL, proto.OK)
		}
		c.replySASL(h, proto.OK, step.reply, now, t)
		return pauseNone, nil
	}
	c.server.meter.Count(meter.AuthFailed)
	c.server.trail.Auth(c, schemeSASL, proto.ErrAuthFailed)
	required := slices.Contains(auth.Required, schemeSASL)
	c.logger().Warn("authentication failed", "scheme", schemeSASL, "reason", strings.Clone(printable.Text(step.err.Error())))
	code := proto.ErrAuthFailed
	switch {
	case required:
		code = proto.ErrSessionClosedRequireSASLAuth
	case auth.AllowFailedSASL:
		code = proto.OK
	}
	c.replySASL(h, code, nil, now, t)
	if code != proto.OK {
		return pauseEnd, nil
	}
	return pauseNone, nil
}

// replySASL queues a reply, which has a body also with an error. An error closes the connection.
func (c *conn) replySASL(h proto.RequestHeader, code proto.ErrCode, token []byte, now time.Time, t *meter.BatchStats) {
	c.push(&queuedStatus{
		op: h.Op, xid: h.Xid, code: code, closes: code != proto.OK, received: now,
		body: jute.AppendBuffer(make([]byte, 0, 4+len(token)), token),
	}, t)
}

// stepSASL hands the token of the request in front to the mechanism. No lock is held.
func (c *conn) stepSASL(in *link.Input) {
	turns := c.server.conns.turns
	turns.begin()
	defer turns.end()
	x := c.sasl
	if x == nil {
		mechanism := c.server.live.Load().Auth.SASL
		if mechanism == nil {
			return // Reload has removed it since
		}
		x = &saslExchange{mechanism: mechanism.New(), begun: time.Now()}
		c.sasl = x
	}
	at := in.At()
	frame, err := in.Frame(c.server.cfg.MaxBuffer)
	in.Back(at)
	step := &saslStep{err: err}
	x.next = step
	d := jute.NewDecoder(frame)
	var h proto.RequestHeader
	var r proto.TokenRecord
	h.Decode(&d)
	r.Decode(&d)
	x.tokens++
	limit := c.server.live.Load().HandshakeTimeout
	switch {
	case err != nil || d.Err() != nil: // the request was decoded before
	case len(r.Token) > maxSASLToken:
		step.err = fmt.Errorf("the token has %d bytes, allowed are %d", len(r.Token), maxSASLToken)
	case x.tokens > maxSASLTokens:
		step.err = fmt.Errorf("the exchange has more than %d tokens", maxSASLTokens)
	case c.server.standstill.Elapsed(x.begun, time.Now()) > limit:
		step.err = fmt.Errorf("the exchange took longer than %v", limit)
	default:
		step.reply, step.id, step.done, step.err = x.mechanism.Step(r.Token)
	}
	if step.done || step.err != nil {
		x.mechanism = nil
	}
}
