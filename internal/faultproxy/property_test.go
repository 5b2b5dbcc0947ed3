package faultproxy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/proto"
)

const modelSession = 7

// modelRequest is a request with what the model must know about it.
type modelRequest struct {
	xid   int32
	op    proto.OpCode
	paths []string
	frame []byte
}

// modelRule is a rule of the model.
type modelRule struct {
	armed *Armed
	fault Fault
	ops   []proto.OpCode
	path  *regexp.Regexp
	left  int // < 0: any number
	count int
}

func (r *modelRule) matches(q modelRequest) bool {
	if r.left == 0 || !slices.Contains(r.ops, q.op) || r.fault.Session != 0 && r.fault.Session != modelSession {
		return false
	}
	return r.fault.PathPrefix == "" || slices.ContainsFunc(q.paths, r.path.MatchString)
}

var modelOps = map[Op][]proto.OpCode{
	"get":      {proto.OpGetData},
	"children": {proto.OpGetChildren, proto.OpGetChildren2},
	"multi":    {proto.OpMulti},
	"ping":     {proto.OpPing},
	"watch":    {proto.OpAddWatch, proto.OpSetWatches},
	OpAny:      {proto.OpGetData, proto.OpGetChildren, proto.OpGetChildren2, proto.OpMulti, proto.OpAddWatch},
}

func drawRequest(t *rapid.T, i int) modelRequest {
	q := modelRequest{xid: int32(rapid.IntRange(1, 3).Draw(t, "xid"))} // few xids, which the gate must not confuse
	p := rapid.SampledFrom([]string{"/", "/a", "/ab", "/a/b", "/q/item-", "/q/item-0000000012", "/q/item-x", "", strings.Repeat("/long", 400)})
	q.op = rapid.SampledFrom([]proto.OpCode{proto.OpGetData, proto.OpGetChildren, proto.OpGetChildren2, proto.OpMulti, proto.OpPing, proto.OpAddWatch, proto.OpSetWatches}).Draw(t, "op")
	switch q.op {
	case proto.OpPing:
		q.frame = requestFrame(q.xid, q.op, nil)
		q.xid = proto.XidPing
	case proto.OpSetWatches:
		q.frame = requestFrame(q.xid, q.op, bare((&proto.SetWatchesRequest{Data: []string{"/a"}}).Append(nil, q.op)))
	case proto.OpMulti:
		q.paths = rapid.SliceOfN(p, 0, 3).Draw(t, "paths")
		q.frame = requestFrame(q.xid, q.op, multi(q.paths...))
	default:
		q.paths = []string{p.Draw(t, "path")}
		q.frame = requestFrame(q.xid, q.op, path(q.paths[0]))
	}
	return q
}

func drawRule(t *rapid.T, rules *Rules) *modelRule {
	f := Fault{
		Kind:    rapid.SampledFrom([]Kind{DropReply, Delay, Fail}).Draw(t, "kind"),
		Op:      rapid.SampledFrom([]Op{"get", "children", "multi", "ping", "watch", OpAny}).Draw(t, "op"),
		Session: rapid.SampledFrom([]int64{0, 0, modelSession, 8}).Draw(t, "session"),
		Times:   rapid.IntRange(-1, 3).Draw(t, "times"),
	}
	if f.Op == "ping" && f.Kind == Fail {
		f.Kind = DropReply
	}
	switch f.Kind {
	case Fail:
		f.Code = rapid.SampledFrom([]proto.ErrCode{proto.ErrNoNode, proto.ErrSessionExpired}).Draw(t, "code")
	case Delay:
		f.Delay = 1
	}
	if f.Op != "ping" {
		f.PathPrefix = rapid.SampledFrom([]string{"", "/", "/a", "/a/", "/q/item-", "/long/long"}).Draw(t, "prefix")
	}
	a, err := rules.Add(f)
	if err != nil {
		t.Fatal(err)
	}
	m := &modelRule{armed: a, fault: f, ops: modelOps[f.Op], left: f.Times}
	if f.Times == 0 {
		m.left = 1
	}
	behind := `($|/|[-0-9][0-9]{9}($|/))`
	if strings.HasSuffix(f.PathPrefix, "/") {
		behind = ``
	}
	m.path = regexp.MustCompile(`^` + regexp.QuoteMeta(f.PathPrefix) + behind)
	return m
}

// modelAnswer is the reply to a failed request.
func modelAnswer(q modelRequest, f Fault, path *regexp.Regexp, zxid proto.Zxid) []byte {
	if q.op != proto.OpMulti || f.Code != proto.ErrNoNode || len(q.paths) == 0 {
		return replyFrame(q.xid, zxid, f.Code, nil)
	}
	failed := 0
	if f.PathPrefix != "" {
		failed = slices.IndexFunc(q.paths, path.MatchString)
	}
	var b []byte
	for i := range q.paths {
		code := map[bool]proto.ErrCode{true: 0, false: -2}[i < failed]
		if i == failed {
			code = f.Code
		}
		b = append(b, 0xff, 0xff, 0xff, 0xff, 0)
		b = binary.BigEndian.AppendUint32(b, uint32(code))
		b = binary.BigEndian.AppendUint32(b, uint32(code))
	}
	b = append(b, 0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff)
	return replyFrame(q.xid, zxid, proto.OK, b)
}

// In whatever pieces bytes pass, the server gets the requests, and the client the replies, that a
// model predicts.
func TestFilter_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rules Rules
		var model []*modelRule
		for range rapid.IntRange(0, 4).Draw(t, "rules") {
			model = append(model, drawRule(t, &rules))
		}
		var requests []modelRequest
		in := connectFrame(0)
		for i := range rapid.IntRange(0, 12).Draw(t, "requests") {
			requests = append(requests, drawRequest(t, i))
		}
		inner := &script{in: in, piece: func(n int) int { return rapid.IntRange(1, n).Draw(t, "piece") }}
		g := NewGate(nil, &rules)
		c := newConn(g, inner)

		// The handshake, then all requests.
		gotConnect := make([]byte, len(in))
		if _, err := io.ReadFull(c, gotConnect); err != nil || !bytes.Equal(gotConnect, in) {
			t.Fatalf("connect: %x, %v", gotConnect, err)
		}
		Attach(c, modelSession)
		answers := []modelAnswerTo{{frame: welcomeFrame(modelSession)}}
		if err := writePieces(t, c, answers[0].frame); err != nil {
			t.Fatal(err)
		}
		var wantGot []byte
		for i, q := range requests {
			inner.in = append(inner.in, q.frame...)
			zxid := proto.Zxid(100 + i)
			a := modelAnswerTo{frame: replyFrame(q.xid, zxid, proto.OK, bytes.Repeat([]byte{9}, i))}
			a.sent = a.frame
			got := q.frame
			for _, r := range model {
				if !r.matches(q) {
					continue
				}
				if r.left > 0 {
					r.left--
				}
				switch r.fault.Kind {
				case DropReply:
					a.rule = r
				case Delay:
					r.count++
				case Fail:
					a.rule = r
					a.frame = modelAnswer(q, r.fault, r.path, zxid)
					got = requestFrame(q.xid, proto.OpExists, path("/"))
				}
				break
			}
			wantGot = append(wantGot, got...)
			answers = append(answers, a)
			if rapid.Bool().Draw(t, "event") {
				e := replyFrame(proto.XidEvent, zxid, proto.OK, (&proto.WatcherEvent{Path: "/e"}).Append(nil))
				answers = append(answers, modelAnswerTo{frame: e, sent: e})
			}
		}
		// The server reads with buffers of any size.
		var got []byte
		for {
			p := make([]byte, rapid.IntRange(1, 200).Draw(t, "buffer"))
			n, err := c.Read(p)
			got = append(got, p[:n]...)
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got, wantGot) {
			t.Fatalf("the server got\n%x, want\n%x", got, wantGot)
		}
		var sent []byte
		want := slices.Clone(answers[0].frame)
		lost := false
		for _, a := range answers[1:] {
			sent = append(sent, a.sent...)
			if lost {
				continue
			}
			if a.rule != nil {
				a.rule.count++
				lost = a.rule.fault.Kind == DropReply
			}
			if !lost {
				want = append(want, a.frame...)
			}
		}
		err := writePieces(t, c, sent)
		if lost != errors.Is(err, net.ErrClosed) || lost != inner.isEnded {
			t.Fatalf("an answer is lost: %v; Write says %v, connection closed: %v", lost, err, inner.isEnded)
		}
		if !bytes.Equal(inner.out.Bytes(), want) {
			t.Fatalf("the client got\n%x, want\n%x", inner.out.Bytes(), want)
		}
		_ = c.Close()
		for _, r := range model {
			if r.armed.Count() != r.count || r.armed.taken != r.count {
				t.Fatalf("%v: want %d times, and none under way, but %d are taken", r.armed, r.count, r.armed.taken)
			}
		}
	})
}

// modelAnswerTo is a reply or event as the server sends it and as the client gets it.
type modelAnswerTo struct {
	sent, frame []byte
	rule        *modelRule
}

func writePieces(t *rapid.T, c net.Conn, b []byte) error {
	for len(b) > 0 {
		n := rapid.IntRange(1, len(b)).Draw(t, "write")
		if m, err := c.Write(b[:n]); err != nil {
			return err
		} else if m != n {
			return fmt.Errorf("wrote %d of %d bytes", m, n)
		}
		b = b[n:]
	}
	return nil
}
