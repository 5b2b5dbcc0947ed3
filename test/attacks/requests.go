package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/internal/testkit/rawclient"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/test/compat/diff/exchange"
)

// requestAttacks are requests that cost the server more than the client.
func requestAttacks() []*attack {
	return []*attack{
		{name: "acl-multi", what: "multis of 10,000 checks of a znode with 36,000 ACL entries, 4 connections", run: aclMulti},
		{name: "acl-multiread", what: "multiReads of 10,000 gets of such a znode, 4 connections", run: aclMultiRead},
		{name: "reads-behind-write", what: "a set and 60 gets of a 1 MB znode in a segment, 60 connections", run: readsBehindWrite},
		{name: "pipeline", what: "endless pipelines of gets and of sets", run: pipeline},
		{name: "children", what: "getChildren of 20,000 children, 10 deep, 20 connections", run: children},
		{name: "deep-paths", what: "requests and watches with paths of 2,000 components and of 100 kB, 20 connections", run: deepPaths},
		{name: "mutated", what: "mutated frames, 16 connections", run: mutated},
	}
}

// largeACL returns an ACL whose last entry admits everybody.
func largeACL(n int) []proto.ACL {
	acl := make([]proto.ACL, 0, n+1)
	for i := range n {
		acl = append(acl, proto.ACL{Perms: proto.PermRead, ID: proto.ID{Scheme: "ip", ID: fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)}})
	}
	return append(acl, proto.OpenACL()...)
}

// createWithLargeACL creates a znode with as many ACL entries as the server takes.
func createWithLargeACL(a *attacker) string {
	const path = "/acl"
	n := a.createLargest(36000, func(s *stranger, n int) error { return s.createWith(path, nil, largeACL(n)) })
	if n < 36000 {
		a.note("ACL entries accepted: %d", n)
	}
	return path
}

// ask sends requests again and again in n sessions, each time when the replies to the previous ones
// have arrived. add adds those of the i-th session for the k-th time, and returns their number.
func (a *attacker) ask(n int, add func(s *stranger, i, k int) (requests int)) {
	a.ready()
	a.each(n, func(i int) {
		a.withSession(func(s *stranger) {
			for k := 0; ; k++ {
				if due := add(s, i, k); s.flush() != nil || s.replies(due) != nil {
					return
				}
			}
		})
	})
}

// repeat is ask with the same request.
func (a *attacker) repeat(n int, op proto.OpCode, body []byte) {
	a.ask(n, func(s *stranger, _, _ int) int {
		s.add(op, body)
		return 1
	})
}

func aclMulti(a *attacker) {
	check := proto.MultiOp{Op: proto.OpCheck, Path: createWithLargeACL(a), Version: -1}
	a.repeat(4, proto.OpMulti, multiOf(10000, func(int) proto.MultiOp { return check }))
}

func aclMultiRead(a *attacker) {
	get := proto.MultiOp{Op: proto.OpGetData, Path: createWithLargeACL(a)}
	a.repeat(4, proto.OpMultiRead, multiOf(10000, func(int) proto.MultiOp { return get }))
}

// createLarge creates the znode /large with 1 MB of data.
func (a *attacker) createLarge() {
	s := a.prepare()
	defer must.Finally(s.Close)
	must.Do(s.create("/large", make([]byte, mib)))
}

func readsBehindWrite(a *attacker) {
	a.createLarge()
	a.ready()
	a.each(60, func(i int) {
		a.withSession(func(s *stranger) {
			path := fmt.Sprintf("/small-%d", i)
			if s.create(path, nil) != nil {
				return
			}
			for {
				s.add(proto.OpSetData, setData(path, nil))
				for range 60 {
					s.add(proto.OpGetData, getData("/large"))
				}
				if s.flush() != nil || s.discard(60*mib) != nil {
					return
				}
			}
		})
	})
}

func pipeline(a *attacker) {
	s := a.prepare()
	must.Do(s.create("/pipeline", make([]byte, 1024)))
	must.Do(s.Close())
	a.ready()
	for _, r := range []struct {
		op   proto.OpCode
		body []byte
	}{{proto.OpGetData, getData("/pipeline")}, {proto.OpSetData, setData("/pipeline", make([]byte, 1024))}} {
		a.each(1, func(int) {
			a.withSession(func(s *stranger) {
				for range 200 {
					s.add(r.op, r.body)
				}
				requests := s.sent
				// Ends when the connection is closed, at the latest at the end of the attack;
				// runAttack waits.
				a.running.Go(func() { _ = s.discard(-1) })
				for s.Write(requests, time.Minute) == nil {
				}
			})
		})
	}
}

func children(a *attacker) {
	const total, each = 20000, 1000
	s := a.prepare()
	must.Do(s.create("/children", nil))
	name := strings.Repeat("n", 40)
	for i := 0; i < total; i += each {
		create := func(j int) proto.MultiOp { return createOp(fmt.Sprintf("/children/%s%05d", name, i+j)) }
		must.Get(s.call(proto.OpMulti, multiOf(each, create)))
	}
	must.Do(s.Close())
	a.ask(20, func(s *stranger, _, _ int) int {
		for range 10 {
			s.add(proto.OpGetChildren2, getData("/children"))
		}
		return 10
	})
}

func deepPaths(a *attacker) {
	s := a.prepare()
	deep := ""
	var r proto.MultiRequest
	for i := range 2000 {
		deep += "/d"
		r.Ops = append(r.Ops, createOp(deep))
		if i%200 == 199 { // a multi stays below 1 MB
			if _, err := s.call(proto.OpMulti, r.Append(nil)); err != nil {
				a.note("deep path refused: %v", err)
				_ = s.Close() // the server may have closed it already
				*s = *a.prepare()
				break
			}
			r.Ops = nil
		}
	}
	long := "/" + strings.Repeat("l", 100<<10)
	if s.create(long, nil) != nil {
		_ = s.Close() // the server may have closed it already
	}
	a.ask(20, func(s *stranger, _, k int) int {
		if k == 0 {
			for _, p := range []string{deep, long} {
				s.add(proto.OpAddWatch, (&proto.AddWatchRequest{Path: p, Mode: proto.AddWatchPersistentRecursive}).Append(nil))
			}
			return 2
		}
		for range 20 {
			s.add(proto.OpSetData, setData(deep, nil))
			s.add(proto.OpExists, getData(long))
			s.add(proto.OpGetData, getData(deep+"/missing"))
		}
		return 60
	})
}

func mutated(a *attacker) {
	a.ready()
	a.each(16, func(i int) {
		r := rand.New(rand.NewPCG(uint64(i), 1))
		for a.ctx.Err() == nil {
			a.mutate(r, i%4 == 0)
			a.pause()
		}
	})
}

// mutate sends mutated frames on a connection, until the server closes it or there were enough.
func (a *attacker) mutate(r *rand.Rand, handshake bool) {
	if handshake {
		a.withConn(a.Addrs[0], 0, func(nc *net.TCPConn) {
			c := rawclient.New(nc)
			hello := rawclient.AppendFrame(nil, rawclient.NewSession(1000).Append(nil))
			if c.Write(flip(r, hello), time.Second) == nil {
				_, _ = c.ReadFrame(200 * time.Millisecond) // whatever the server thinks of it
			}
		})
		return
	}
	a.withSession(func(s *stranger) {
		for range 100 {
			for range 20 {
				s.add(drawRequest(r))
			}
			s.sent = flip(r, s.sent)
			err := s.flush()
			for err == nil {
				_, err = s.ReadFrame(10 * time.Millisecond)
			}
			if !errors.Is(err, rawclient.ErrTimeout) {
				return
			}
		}
	})
}

// flip changes a few bytes, mostly in the headers of frames.
func flip(r *rand.Rand, b []byte) []byte {
	for range 1 + r.IntN(3) {
		switch r.IntN(4) {
		case 0:
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		case 1:
			b[r.IntN(len(b))] = byte(r.Uint32())
		case 2: // a length or count somewhere
			i := r.IntN(len(b))
			copy(b[i:], []byte{0x7f, 0xff, 0xff, 0xff})
		case 3:
			i := r.IntN(len(b))
			copy(b[i:], []byte{0xff, 0xff, 0xff, byte(r.Uint32())})
		}
	}
	return b
}

// anyRequests are requests in the words of diff/exchange. PATH stands for a quoted path.
var anyRequests = []string{
	`create PATH "x" open 0`, `delete PATH -1`, `setData PATH "data" -1`, `addWatch PATH 1`, `auth 0 "digest" "a:b"`, `getData PATH true`,
	`multi { create PATH null open 0 ; setData PATH null -1 ; delete PATH -1 }`, `multiRead { getData PATH false ; getChildren PATH false }`,
}

// drawRequest returns any request.
func drawRequest(r *rand.Rand) (proto.OpCode, []byte) {
	path := fmt.Sprintf(`"/mutated-%d"`, r.IntN(50))
	return must.Get2(exchange.ParseRequest(strings.ReplaceAll(anyRequests[r.IntN(len(anyRequests))], "PATH", path)))
}
