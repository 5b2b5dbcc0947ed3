package client_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/sasl"
)

// countdown is a mechanism in which the client sends a given number of tokens, and the server
// answers each with the same token.
type countdown struct {
	tokens int
	silent bool // the client sends no last token, as in DIGEST-MD5
	err    error
}

type countdownExchange struct {
	countdown
	sent int
}

func (c countdown) New(host string) (sasl.ClientExchange, error) {
	if host != "fake" {
		return nil, errors.New("the host is " + host)
	}
	return &countdownExchange{countdown: c}, nil
}

func (e *countdownExchange) Step(token []byte) ([]byte, bool, error) {
	if e.sent > 0 && len(token) != e.sent-1 {
		return nil, false, errors.New("wrong token")
	}
	if e.sent == e.tokens {
		return nil, true, e.err
	}
	e.sent++
	return make([]byte, e.sent-1), e.sent == e.tokens && !e.silent, nil
}

// tokenReply is the reply to a SASL request; nil is a null token.
func tokenReply(h proto.RequestHeader, code proto.ErrCode, token []byte) []byte {
	body := binary.BigEndian.AppendUint32(nil, uint32(len(token)))
	if token == nil {
		body = []byte{0xff, 0xff, 0xff, 0xff}
	}
	return reply(h.Xid, 0, code, append(body, token...))
}

// TestSASL_FirstOnEachConnection checks that credentials, watches and requests follow the exchange
// on the first connection and on later ones.
func TestSASL_FirstOnEachConnection(t *testing.T) {
	for _, m := range []countdown{{tokens: 1}, {tokens: 2}, {tokens: 2, silent: true}, {tokens: 3, silent: true}} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var ops []proto.OpCode
			f := &fake{handshake: func(r proto.ConnectRequest) []byte {
				mu.Lock()
				defer mu.Unlock()
				ops = append(ops, 0)
				return welcome(r)
			}}
			f.answer = func(h proto.RequestHeader, body []byte) []byte {
				mu.Lock()
				defer mu.Unlock()
				ops = append(ops, h.Op)
				switch h.Op {
				case proto.OpSASL:
					return tokenReply(h, proto.OK, bytes.Clone(body[4:]))
				case proto.OpSync:
					return nil
				case proto.OpAuth, proto.OpCloseSession, proto.OpSetWatches:
					return reply(h.Xid, 0, proto.OK, nil)
				}
				return reply(h.Xid, 1, proto.OK, append(make([]byte, 4), make([]byte, proto.StatBytes)...))
			}
			c, _ := connectFake(t, f, func(cfg *client.Config) {
				cfg.SASL, cfg.Auths = m, []client.Auth{{Scheme: "digest", Credential: []byte("a:b")}}
			})
			if _, _, err := c.Get(t.Context(), "/w", true); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Sync(t.Context(), "/"); !errors.Is(err, proto.ErrConnectionLoss) {
				t.Fatal(err)
			}
			if _, _, err := c.Get(t.Context(), "/w", false); err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			defer mu.Unlock()
			exchange := append([]proto.OpCode{0}, slices.Repeat([]proto.OpCode{proto.OpSASL}, m.tokens)...)
			want := slices.Concat(exchange, []proto.OpCode{proto.OpAuth, proto.OpGetData, proto.OpSync},
				exchange, []proto.OpCode{proto.OpAuth, proto.OpSetWatches, proto.OpGetData})
			if !slices.Equal(ops, want) {
				t.Errorf("%+v: sent %v, want %v", m, ops, want)
			}
		})
	}
}

// TestSASL_Fails checks that a failed exchange gives no Client, and which errors are refusals.
func TestSASL_Fails(t *testing.T) {
	for _, c := range []struct {
		name    string
		m       countdown
		answer  func(h proto.RequestHeader) []byte
		refused bool
		want    string
	}{
		{"refused", countdown{tokens: 2}, func(h proto.RequestHeader) []byte { return tokenReply(h, proto.ErrAuthFailed, nil) }, true, "refused the credentials"},
		{"demanded", countdown{tokens: 2}, func(h proto.RequestHeader) []byte {
			return tokenReply(h, proto.ErrSessionClosedRequireSASLAuth, nil)
		}, true, "refused the credentials"},
		{"refused without a body", countdown{tokens: 2}, func(h proto.RequestHeader) []byte { return reply(h.Xid, 0, proto.ErrAuthFailed, nil) }, true, "refused"},
		{"no SASL", countdown{tokens: 2}, func(h proto.RequestHeader) []byte { return tokenReply(h, proto.OK, nil) }, false, "no SASL configured"},
		{"closed", countdown{tokens: 2}, func(proto.RequestHeader) []byte { return nil }, false, "closed the connection"},
		{"another reply", countdown{tokens: 2}, func(h proto.RequestHeader) []byte { h.Xid += 7; return tokenReply(h, proto.OK, nil) }, false, "a reply to request"},
		{"too long", countdown{tokens: 2}, func(proto.RequestHeader) []byte { return []byte{0x7f, 0, 0, 0} }, false, "the reply of 2130706432 bytes is too large"},
		{"cut", countdown{tokens: 2}, func(h proto.RequestHeader) []byte { return reply(h.Xid, 0, proto.OK, []byte{0, 0, 0, 9, 1}) }, false, "buffer needs 9 bytes, 1 are left"},
		{"more", countdown{tokens: 2}, func(h proto.RequestHeader) []byte { return reply(h.Xid, 0, proto.OK, []byte{0, 0, 0, 0, 1}) }, false, "1 bytes after the token"},
		{"no token", countdown{tokens: 2}, func(h proto.RequestHeader) []byte { return reply(h.Xid, 0, proto.OK, nil) }, false, "int needs 4 bytes, 0 are left"},
		{"without an end", countdown{tokens: 100}, nil, false, "has no end"},
		{"the server proved nothing", countdown{tokens: 1, silent: true, err: errors.New("an impostor")}, nil, false, "an impostor"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fake{handshake: welcome, answer: func(h proto.RequestHeader, body []byte) []byte {
				if c.answer != nil {
					return c.answer(h)
				}
				return tokenReply(h, proto.OK, body[4:])
			}}
			_, err := client.Connect(t.Context(), client.Config{Servers: []string{"fake:1"}, Dial: f.Dial, SASL: c.m})
			f.all.Wait()
			if !errors.Is(err, client.ErrSASL) || errors.Is(err, proto.ErrAuthFailed) != c.refused || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestSASL_RefusedLater checks that a refusal on a later connection ends the Client, and that a
// server without SASL is only passed over.
func TestSASL_RefusedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		codes := []struct {
			code  proto.ErrCode
			token []byte
		}{{proto.OK, []byte{}}, {proto.OK, nil}, {proto.OK, []byte{}}, {proto.ErrAuthFailed, nil}}
		c, e := connectFake(t, &fake{answer: func(h proto.RequestHeader, _ []byte) []byte {
			mu.Lock()
			defer mu.Unlock()
			if h.Op != proto.OpSASL {
				return nil
			}
			next := codes[0]
			codes = codes[1:]
			return tokenReply(h, next.code, next.token)
		}}, func(cfg *client.Config) { cfg.SASL = countdown{tokens: 1, silent: true} })
		for range 2 { // the second answer gives no identity, so the third is that of the second session
			if _, err := c.Sync(t.Context(), "/"); !errors.Is(err, proto.ErrConnectionLoss) {
				t.Fatal(err)
			}
		}
		_, err := c.Sync(t.Context(), "/")
		if !errors.Is(err, client.ErrSASL) || !errors.Is(err, proto.ErrAuthFailed) || !errors.Is(c.Err(), client.ErrSASL) {
			t.Errorf("%v; %v", err, c.Err())
		}
		e.awaitState(t, client.AuthFailed)
	})
}

// TestDemandedIdentity_EndsTheClient checks that -124, to a request or a ping, ends the Client:
// with another connection the server would do the same.
func TestDemandedIdentity_EndsTheClient(t *testing.T) {
	for _, op := range []proto.OpCode{proto.OpSetData, proto.OpPing} {
		synctest.Test(t, func(t *testing.T) {
			connections := 0
			f := &fake{
				handshake: func(r proto.ConnectRequest) []byte { connections++; return welcome(r) },
				answer: func(h proto.RequestHeader, _ []byte) []byte {
					return reply(h.Xid, 0, proto.ErrSessionClosedRequireSASLAuth, nil)
				},
			}
			c, e := connectFake(t, f)
			if op == proto.OpSetData {
				_, err := c.Set(t.Context(), "/a", nil, -1)
				var refused *client.Error
				if !errors.As(err, &refused) || refused.Code != proto.ErrSessionClosedRequireSASLAuth || refused.Unknown {
					t.Errorf("%v", err)
				}
			}
			e.awaitState(t, client.AuthFailed)
			if err := c.Err(); !errors.Is(err, proto.ErrSessionClosedRequireSASLAuth) || !errors.Is(err, proto.ErrAuthFailed) || !strings.Contains(err.Error(), "enforce.auth.schemes") {
				t.Errorf("%v", err)
			}
			if _, err := c.Set(t.Context(), "/a", nil, -1); !errors.Is(err, proto.ErrAuthFailed) {
				t.Errorf("%v", err)
			}
			_ = c.Close()
			f.all.Wait()
			if connections != 1 {
				t.Errorf("%d connections", connections)
			}
		})
	}
}
