package faultproxy

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/memnet"
	"github.com/gozkd/gozkd/internal/testkit/pipenet"
	"github.com/gozkd/gozkd/proto"
)

// bubble runs f in synctest bubbles, with a world on pipes and with one on a network in memory,
// which has buffers. If any wait were not durably blocking, the bubble's clock would stop and the
// test would hang.
func bubble(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := pipenet.Listen()
		f(t, newWorld(t, l, l.Dial))
	})
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(0)
		l, err := n.Listen("server:2181")
		if err != nil {
			t.Fatal(err)
		}
		f(t, newWorld(t, l, func() (net.Conn, error) { return n.Dial(t.Context(), "client", "server:2181") }))
	})
}

func TestFail_ServerDoesNotSeeIt(t *testing.T) {
	w := tcpWorld(t)
	a := w.arm(Fault{Kind: Fail, Op: "create", PathPrefix: "/a", Code: proto.ErrNodeExists, Times: 2})
	c, _ := w.connect()
	stand := func(xid int32) []byte { return requestFrame(xid, proto.OpExists, path("/")) }
	for _, r := range []struct {
		xid        int32
		op         proto.OpCode
		body       record
		got, reply []byte
	}{
		{1, proto.OpGetData, path("/a"), nil, nil},
		{2, proto.OpCreate, create("/ab"), nil, nil},
		{3, proto.OpCreate2, create("/a"), stand(3), replyFrame(3, 103, proto.ErrNodeExists, nil)},
		{4, proto.OpCreateContainer, create("/a/b"), stand(4), replyFrame(4, 104, proto.ErrNodeExists, nil)},
		{5, proto.OpCreate, create("/a"), nil, nil},
	} {
		sent := requestFrame(r.xid, r.op, r.body)
		if r.got == nil {
			r.got, r.reply = sent, replyFrame(r.xid, proto.Zxid(100+r.xid), proto.OK, sent[requestBytes:])
		}
		c.send(sent)
		w.expectGot(r.got)
		c.expect(r.reply)
	}
	expectCount(t, a, 2, true)
	w.rules.mu.Lock()
	defer w.rules.mu.Unlock()
	if len(w.rules.list) != 0 {
		t.Error("a rule that is used up is still looked at")
	}
}

// Pipelined requests are answered in order, including those that fail.
func TestFail_InItsPlace(t *testing.T) {
	w := tcpWorld(t)
	w.arm(Fault{Kind: Fail, Op: "get", Code: proto.ErrNoAuth, Times: -1})
	c, _ := w.connect()
	var all []byte
	for xid := int32(1); xid <= 6; xid++ {
		op := proto.OpExists
		if xid%2 == 0 {
			op = proto.OpGetData
		}
		all = append(all, requestFrame(xid, op, path("/a"))...)
	}
	c.send(all)
	for xid := int32(1); xid <= 6; xid++ {
		if xid%2 == 0 {
			c.expect(replyFrame(xid, proto.Zxid(100+xid), proto.ErrNoAuth, nil))
		} else {
			c.expect(replyFrame(xid, proto.Zxid(100+xid), proto.OK, path("/a").Append(nil)))
		}
	}
}

// The first matching rule takes a request; when it is used up, the next one does.
func TestRules_InOrder(t *testing.T) {
	w := tcpWorld(t)
	first := w.arm(Fault{Kind: Fail, Op: OpAny, Code: proto.ErrNoAuth})
	second := w.arm(Fault{Kind: Fail, Op: "get", Code: proto.ErrNoNode, Times: -1})
	third := w.arm(Fault{Kind: Fail, Op: "get", Code: proto.ErrBadVersion})
	c, _ := w.connect()
	fails := func(xid int32, code proto.ErrCode) {
		t.Helper()
		c.send(requestFrame(xid, proto.OpGetData, path("/")))
		c.expect(replyFrame(xid, proto.Zxid(100+xid), code, nil))
	}
	expectCount(t, second, 0, false)
	fails(1, proto.ErrNoAuth)
	fails(2, proto.ErrNoNode)
	expectCount(t, second, 1, true)
	fails(3, proto.ErrNoNode)
	second.Remove()
	second.Remove()
	fails(4, proto.ErrBadVersion)
	expectCount(t, first, 1, true)
	expectCount(t, second, 2, true)
	expectCount(t, third, 1, true)
	w.arm(Fault{Kind: Fail, Op: "get", Code: proto.ErrBadVersion})
	w.rules.Clear()
	c.send(requestFrame(5, proto.OpGetData, path("/")))
	c.expect(replyFrame(5, 105, proto.OK, path("/").Append(nil)))
}

func TestFail_Multi(t *testing.T) {
	errs := func(codes ...proto.ErrCode) []byte {
		var m proto.MultiResponse
		for _, c := range codes {
			m.Results = append(m.Results, proto.MultiResult{Op: proto.OpError, Err: c})
		}
		return m.Append(nil)
	}
	for name, c := range map[string]struct {
		op     proto.OpCode
		body   record
		prefix string
		code   proto.ErrCode
		header proto.ErrCode
		reply  []byte
	}{
		"the first op":             {proto.OpMulti, multi("/a", "/b", "/c"), "", proto.ErrNoNode, proto.OK, errs(proto.ErrNoNode, -2, -2)},
		"the op of the path":       {proto.OpMulti, multi("/a", "/b", "/c"), "/b", proto.ErrNoNode, proto.OK, errs(0, proto.ErrNoNode, -2)},
		"error of no op":           {proto.OpMulti, multi("/a", "/b"), "", proto.ErrSessionExpired, proto.ErrSessionExpired, nil},
		"no op":                    {proto.OpMulti, multi(), "", proto.ErrNoNode, proto.ErrNoNode, nil},
		"malformed":                {proto.OpMulti, bare("rubbish"), "", proto.ErrNoNode, proto.ErrNoNode, nil},
		"reads":                    {proto.OpMultiRead, &proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpGetData, Path: "/a"}}}, "/a", proto.ErrNoNode, proto.ErrNoNode, nil},
		"too long to be looked at": {proto.OpMulti, bare(make([]byte, maxMultiBytes)), "", proto.ErrNoNode, proto.ErrNoNode, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := tcpWorld(t)
			w.arm(Fault{Kind: Fail, Op: "multi", PathPrefix: c.prefix, Code: c.code})
			cl, _ := w.connect()
			cl.send(requestFrame(1, c.op, c.body))
			cl.expect(replyFrame(1, 101, c.header, c.reply))
		})
	}
}

// A multi that is malformed or too long matches no path.
func TestPath_MultiWithoutOne(t *testing.T) {
	w := tcpWorld(t)
	a := w.arm(Fault{Kind: Fail, Op: "multi", PathPrefix: "/", Code: proto.ErrNoNode})
	c, _ := w.connect()
	for i, body := range []record{bare("rubbish"), bare(make([]byte, maxMultiBytes)), multi()} {
		f := requestFrame(int32(i), proto.OpMulti, body)
		c.send(f)
		c.expect(replyFrame(int32(i), proto.Zxid(100+i), proto.OK, f[requestBytes:]))
	}
	expectCount(t, a, 0, false)
}

func TestDropReply(t *testing.T) {
	w := tcpWorld(t)
	a := w.arm(Fault{Kind: DropReply, Op: "create"})
	c, _ := w.connect()
	get, lost := requestFrame(1, proto.OpGetData, path("/a")), requestFrame(2, proto.OpCreate, create("/a"))
	c.send(append(get, lost...))
	w.expectGot(get)
	w.expectGot(lost)
	c.expect(replyFrame(1, 101, proto.OK, get[requestBytes:]))
	c.expectEnd()
	expectCount(t, a, 1, true)
	w.expectGot(nil) // the connection is broken for the server too
	c, _ = w.connect()
	c.send(lost)
	c.expect(replyFrame(2, 102, proto.OK, lost[requestBytes:]))
}

// Earlier bytes arrive, also if the client reads them only after the connection has broken for the
// server.
func TestDropReply_WhatWasBeforeArrives(t *testing.T) {
	w := tcpWorld(t)
	w.arm(Fault{Kind: DropReply, Op: "create"})
	c, _ := w.connect()
	if err := c.nc.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	if err := (<-w.conns).(*conn).Conn.(*net.TCPConn).SetWriteBuffer(1 << 20); err != nil {
		t.Fatal(err)
	}
	big := requestFrame(1, proto.OpSetData, bare(make([]byte, 150<<10))) // more than one buffer holds, less than the other
	last := requestFrame(2, proto.OpCreate, create("/a"))
	c.send(append(big, last...))
	w.expectGot(big)
	w.expectGot(last)
	w.expectGot(nil)
	c.expect(replyFrame(1, 101, proto.OK, big[requestBytes:]))
	c.expectEnd()
}

// Of two replies with the same xid the right one is lost.
func TestDropReply_SecondPing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c, _ := w.connect()
		hold := w.arm(Fault{Kind: Delay, Op: "exists", Delay: time.Minute})
		_ = c.nc.SetDeadline(time.Time{})
		a := w.arm(Fault{Kind: DropReply, Op: "ping"})
		go func() { // ends when it is read, or with the connection
			_, _ = c.nc.Write(append(requestFrame(1, proto.OpExists, path("/a")), requestFrame(proto.XidPing, proto.OpPing, nil)...))
		}()
		<-hold.Done()
		a.Remove()
		a = w.arm(Fault{Kind: DropReply, Op: "ping", Times: 1})
		c.expect(replyFrame(1, 101, proto.OK, path("/a").Append(nil)))
		c.expectEnd()
		expectCount(t, a, 1, true)
	})
	// The first request has no rule, the second has one.
	rule := &Armed{}
	o := outstanding{{xid: proto.XidPing}, {xid: 5}, {xid: proto.XidPing, rule: rule}}
	if u := o.answered(proto.XidPing); u.rule != nil {
		t.Error("the first ping's answer is the second's")
	}
	if u := o.answered(77); u.rule != nil {
		t.Error("an answer to nothing")
	}
	if u := o.answered(proto.XidPing); u.rule != rule {
		t.Error("the second ping's answer is not its own")
	}
	if o.answered(5); len(o) != 0 {
		t.Errorf("%d are left", len(o))
	}
}

func TestOutstanding_KeepsNoMoreThanItMust(t *testing.T) {
	o := make(outstanding, 10)
	for i := range int32(100_000) {
		o = append(o, unanswered{xid: i})
		o.answered(o[0].xid)
	}
	if cap(o) > 100 {
		t.Errorf("room for %d with 10 in use", cap(o))
	}
}

// A rule is armed again if its request's connection breaks before the reply.
func TestDropReply_ArmedAgain(t *testing.T) {
	var rules Rules
	g := NewGate(nil, &rules)
	a, err := rules.Add(Fault{Kind: DropReply, Op: "create"})
	if err != nil {
		t.Fatal(err)
	}
	f := requestFrame(2, proto.OpCreate, create("/a"))
	attempt := func() *conn {
		inner := &script{in: append(connectFrame(0), f...), piece: func(n int) int { return n }}
		c := newConn(g, inner)
		p := make([]byte, 1000)
		if n, err := c.Read(p); n != len(inner.in)+len(connectFrame(0))+len(f) || err != nil {
			t.Fatal(n, err)
		}
		return c
	}
	for range 3 {
		c := attempt()
		if a.taken != 1 {
			t.Fatal("not taken")
		}
		if other := attempt(); a.taken != 1 || other.outstanding[1].rule != nil {
			t.Fatal("taken twice, but armed once")
		}
		_ = c.Close()
		expectCount(t, a, 0, false)
	}
	c := attempt()
	if _, err := c.Write(append(welcomeFrame(1), replyFrame(2, 1, 0, nil)...)); err != net.ErrClosed { //nolint:errorlint // the contract promises exactly this error
		t.Fatal(err)
	}
	expectCount(t, a, 1, true)
}

// A rule removed before the reply drops nothing.
func TestDropReply_RemovedBeforeTheAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c, _ := w.connect()
		a := w.arm(Fault{Kind: DropReply, Op: "create"})
		f := requestFrame(1, proto.OpCreate, create("/a"))
		c.send(f[:len(f)-1])
		synctest.Wait()
		if a.taken != 1 {
			t.Fatal("not taken: the rest of the request decides nothing")
		}
		a.Remove()
		c.send(f[len(f)-1:])
		c.expect(replyFrame(1, 101, proto.OK, f[requestBytes:]))
		expectCount(t, a, 0, false)
	})
}

func TestDropReply_Connect(t *testing.T) {
	w := tcpWorld(t)
	a := w.arm(Fault{Kind: DropReply, Op: OpConnect, Session: 0x77})
	c, _ := w.connect() // another session
	c.send(requestFrame(1, proto.OpPing, nil))
	lost := w.open()
	lost.send(connectFrame(0x77))
	lost.expectEnd()
	expectCount(t, a, 1, true)
	again := w.open()
	again.send(connectFrame(0x77))
	again.expect(welcomeFrame(0x77))
}

func TestSessionFilter(t *testing.T) {
	w := tcpWorld(t)
	one, id := w.connect()
	two, other := w.connect()
	if id == other {
		t.Fatal("one session for two")
	}
	a := w.arm(Fault{Kind: Fail, Op: OpAny, Session: other, Code: proto.ErrNoAuth})
	f := requestFrame(1, proto.OpGetData, path("/"))
	one.send(f)
	one.expect(replyFrame(1, 101, proto.OK, f[requestBytes:]))
	expectCount(t, a, 0, false)
	two.send(f)
	two.expect(replyFrame(1, 101, proto.ErrNoAuth, nil))
	expectCount(t, a, 1, true)
}

func TestDelay(t *testing.T) {
	for _, op := range []Op{OpConnect, "create"} {
		bubble(t, func(t *testing.T, w *world) {
			a := w.arm(Fault{Kind: Delay, Op: op, Delay: time.Hour})
			c := w.open()
			_ = c.nc.SetDeadline(time.Time{})
			at := time.Now()
			c.send(connectFrame(0))
			if op == OpConnect {
				expectAfter(t, a, at, time.Hour, func() { c.expect(welcomeFrame(1)) })
				return
			}
			c.expect(welcomeFrame(1))
			go c.send(append(requestFrame(1, proto.OpExists, path("/")), append(requestFrame(2, proto.OpCreate, create("/a")), // ends when it is read
				requestFrame(3, proto.OpExists, path("/"))...)...))
			c.expect(replyFrame(1, 101, proto.OK, path("/").Append(nil)))
			expectAfter(t, a, at, time.Hour, func() { c.expect(replyFrame(2, 102, proto.OK, create("/a").Append(nil))) })
			expectAfter(t, a, at, time.Hour, func() { c.expect(replyFrame(3, 103, proto.OK, path("/").Append(nil))) })
		})
	}
}

// expectAfter checks that f ends d after at, and that a has happened by then.
func expectAfter(t *testing.T, a *Armed, at time.Time, d time.Duration, f func()) {
	t.Helper()
	<-a.Done() // when the request arrived
	f()
	if took := time.Since(at); took != d {
		t.Errorf("after %v, want %v", took, d)
	}
}

func TestDelay_EndsWithItsRule(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.arm(Fault{Kind: Delay, Op: "create", Delay: time.Hour, Times: -1})
		c, _ := w.connect()
		at := time.Now()
		c.send(requestFrame(2, proto.OpCreate, create("/a")))
		<-a.Done()
		w.rules.Clear()
		c.expect(replyFrame(2, 102, proto.OK, create("/a").Append(nil)))
		if took := time.Since(at); took != 0 {
			t.Errorf("after %v", took)
		}
	})
}
