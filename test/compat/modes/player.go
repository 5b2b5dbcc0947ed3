package modes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/internal/testkit/rawclient"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/test/compat/diff/exchange"
	"github.com/gozkd/gozkd/test/compat/server"
)

// patience bounds each exchange with a server, and each wait for a server.
const patience = 60 * time.Second

// player plays scripts on an ensemble and keeps the replies.
type player struct {
	ctx   context.Context
	e     *server.Ensemble
	lines []string
}

// say adds a line.
func (p *player) say(what string, outcome ...any) {
	line := strings.TrimSuffix(fmt.Sprintln(outcome...), "\n")
	p.lines = append(p.lines, what+": "+line)
}

// session is a client's session and its connection.
type session struct {
	c    *rawclient.Conn
	resp proto.ConnectResponse
	xid  int32
	zxid proto.Zxid
}

// open sends a connect request of a client that accepts a read-only server, and returns what the
// answer was.
func (p *player) open(m *server.Member, r proto.ConnectRequest) (*session, string) {
	r.HasReadOnly, r.ReadOnly = true, true
	return p.openAs(m, r)
}

func (p *player) openAs(m *server.Member, r proto.ConnectRequest) (*session, string) {
	s := &session{c: must.Get(rawclient.Dial(p.ctx, m.Addr()))}
	r.TimeoutMs = cmp.Or(r.TimeoutMs, 10_000)
	if r.Passwd == nil {
		r.Passwd = make([]byte, proto.PasswdBytes)
	}
	var err error
	switch s.resp, err = s.c.Handshake(&r, patience); {
	case errors.Is(err, rawclient.ErrClosed):
		return s, "closed"
	case err != nil:
		must.Do(err)
	case s.resp.SessionID == 0:
		return s, fmt.Sprintf("refused, read-only %t", s.resp.ReadOnly)
	case r.SessionID == s.resp.SessionID:
		return s, fmt.Sprintf("resumed for %d ms, read-only %t", s.resp.TimeoutMs, s.resp.ReadOnly)
	}
	return s, fmt.Sprintf("opened for %d ms, read-only %t", s.resp.TimeoutMs, s.resp.ReadOnly)
}

func (s *session) claim() proto.ConnectRequest {
	return proto.ConnectRequest{SessionID: s.resp.SessionID, Passwd: s.resp.Passwd}
}

// do sends a request in the words of diff/exchange, and returns the code of the reply, for a multi
// also the codes of the operations.
func (s *session) do(words string) string {
	op, body := must.Get2(exchange.ParseRequest(words))
	s.xid++
	if err := s.c.Write(rawclient.AppendRequest(nil, s.xid, op, body), patience); err != nil {
		return err.Error()
	}
	return s.answer(op)
}

// reply returns the next answer, to a request that is not a multi, or how the connection ended.
func (s *session) reply() string { return s.answer(proto.OpPing) }

func (s *session) answer(op proto.OpCode) string {
	h, d, err := s.c.Next(patience)
	if err != nil {
		return err.Error()
	}
	if h.Zxid > 0 {
		s.zxid = h.Zxid
	}
	text := h.Err.String()
	if op == proto.OpMulti && d.Remaining() > 0 {
		var m proto.MultiResponse
		must.Do(m.Decode(&d))
		for _, r := range m.Results {
			text += ", " + r.Err.String()
		}
	}
	return text
}

// await waits until a word has the wanted answer.
func (p *player) await(m *server.Member, word, want string) {
	must.Await(p.ctx, patience, fmt.Sprintf("%s of member %d is %q", word, m.ID, want), func() error {
		if got, _ := server.FourLetterWord(p.ctx, m.Addr(), word); got != want {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
}
