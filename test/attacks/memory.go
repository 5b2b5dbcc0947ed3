package main

import (
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/internal/testkit/rawclient"
	"github.com/gozkd/gozkd/proto"
)

// memoryAttacks make the server keep data that they send, or replies that they do not read.
func memoryAttacks() []*attack {
	return []*attack{
		{name: "unread-replaced", what: "a get of a changing 1 MB znode, 400 unread connections", run: unreadReplaced},
		{name: "unread-gets", what: "gets of a 1 MB znode, 60 unread connections", run: unreadGets},
		{name: "unread-multiread", what: "multiReads of 10,000 such gets, 10 unread connections", run: unreadMultiRead},
		{name: "unread-long-path", what: "a watch on a path of 1 MB, 60 unread connections", run: unreadLongPath},
		{name: "unread-events", what: "recursive watches under multis of 1,000 sets, 100 unread connections", run: unreadEvents},
		{name: "many-watches", what: "watches on long paths, 20 connections", run: manyWatches},
		{name: "partial-handshakes", what: "400 kB of a handshake of 1 MB, 4,000 connections", run: partialHandshakes},
		{name: "slow-frames", what: "most of a frame of 1 MB, then a byte every 100 ms, 1,000 sessions", run: slowFrames},
	}
}

// unread sends the same requests again and again on n connections that do not read, until they
// can't be sent any longer, and then keeps the connections open. A connection that the server
// closes is made anew.
func (a *attacker) unread(n int, op proto.OpCode, body []byte) {
	a.ready()
	a.unreadEvery(0, n, op, body)
}

// unreadEvery is unread whose connections begin in turn.
func (a *attacker) unreadEvery(pause time.Duration, n int, op proto.OpCode, body []byte) {
	a.each(n, func(i int) {
		a.sleep(time.Duration(i) * pause)
		a.withSession(func(s *stranger) {
			s.deaf()
			for range 20 {
				s.add(op, body)
			}
			requests := s.sent
			for s.Write(requests, time.Minute) == nil {
			}
		})
	})
}

func unreadGets(a *attacker) {
	a.createLarge()
	a.unread(60, proto.OpGetData, getData("/large"))
}

// unreadReplaced makes the server hold versions of a znode that only clients who do not read need.
func unreadReplaced(a *attacker) {
	a.createLarge()
	a.ready()
	a.unreadEvery(8*time.Millisecond, 400, proto.OpGetData, getData("/large"))
	a.repeat(1, proto.OpSetData, setData("/large", make([]byte, 1_000_000)))
}

func unreadMultiRead(a *attacker) {
	a.createLarge()
	get := proto.MultiOp{Op: proto.OpGetData, Path: "/large"}
	a.unread(10, proto.OpMultiRead, multiOf(10000, func(int) proto.MultiOp { return get }))
}

// watchUnread has n connections that watch path and do not read. Closed ones are made anew.
func (a *attacker) watchUnread(n int, path string, mode proto.AddWatchMode) {
	watch := (&proto.AddWatchRequest{Path: path, Mode: mode}).Append(nil)
	a.each(n, func(int) {
		a.withSession(func(s *stranger) {
			s.deaf()
			if _, err := s.call(proto.OpAddWatch, watch); err != nil {
				return
			}
			// Pings keep the session alive, and fail after the server has closed the connection.
			for a.ctx.Err() == nil {
				s.add(proto.OpPing, nil)
				if s.flush() != nil {
					return
				}
				a.sleep(200 * time.Millisecond)
			}
		})
	})
}

func unreadLongPath(a *attacker) {
	var path string
	n := a.createLargest(1<<20-1024, func(s *stranger, n int) error {
		path = "/" + strings.Repeat("p", n-1)
		return s.create(path, nil)
	})
	if n < 1<<20-1024 {
		a.note("path accepted: %d kB", n>>10)
	}
	a.ready()
	a.watchUnread(60, path, proto.AddWatchPersistent)
	a.repeat(1, proto.OpSetData, setData(path, nil))
}

func unreadEvents(a *attacker) {
	s := a.prepare()
	must.Do(s.create("/events", nil))
	path := func(i int) string { return fmt.Sprintf("/events/%s%04d", strings.Repeat("e", 200), i) }
	create := multiOf(1000, func(i int) proto.MultiOp { return createOp(path(i)) })
	must.Get(s.call(proto.OpMulti, create))
	must.Do(s.Close())
	set := multiOf(1000, func(i int) proto.MultiOp {
		return proto.MultiOp{Op: proto.OpSetData, Path: path(i), Version: -1}
	})
	a.ready()
	a.watchUnread(100, "/events", proto.AddWatchPersistentRecursive)
	a.sleep(time.Second)
	a.repeat(2, proto.OpMulti, set)
}

func manyWatches(a *attacker) {
	name := strings.Repeat("w", 1000)
	a.ask(20, func(s *stranger, i, k int) int {
		for j := range 50 {
			path := fmt.Sprintf("/%s-%d-%d-%d", name, i, k, j)
			s.add(proto.OpExists, (&proto.PathWatchRequest{Path: path, Watch: true}).Append(nil))
		}
		return 50
	})
}

func partialHandshakes(a *attacker) {
	a.ready()
	part := append(header(1<<20-1024), make([]byte, 400<<10)...)
	a.hold(4000, part)
}

func slowFrames(a *attacker) {
	a.ready()
	part := append(header(1<<20-1024), make([]byte, 400<<10)...)
	a.each(1000, func(int) {
		a.withSession(func(s *stranger) {
			for err := s.Write(part, time.Minute); err == nil && a.ctx.Err() == nil; err = s.Write(part[4:5], time.Minute) {
				a.sleep(100 * time.Millisecond)
			}
		})
	})
}

// hold opens n connections without a session, sends first on each, and keeps them open. A
// connection that the server closes is made anew.
func (a *attacker) hold(n int, first []byte) {
	a.each(n, func(int) {
		a.withConn(a.Addrs[0], retry, func(nc *net.TCPConn) {
			if rawclient.New(nc).Write(first, time.Minute) == nil {
				_, _ = nc.Read(make([]byte, 1)) // until the server closes the connection or the attack ends
			}
		})
	})
}
