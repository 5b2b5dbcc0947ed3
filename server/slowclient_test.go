package server_test

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// slowConn is the connection of a client that takes bytes at a steady rate.
type slowConn struct {
	net.Conn
	perSecond int
}

func (s *slowConn) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b[:min(len(b), 1<<10)])
	time.Sleep(time.Duration(n) * time.Second / time.Duration(s.perSecond))
	return n, err
}

// slow makes a client take that many bytes per second from now on.
func (r *raw) slow(perSecond int) {
	if t, ok := r.nc.(*tls.Conn); ok {
		t.NetConn().(*slowConn).perSecond = perSecond
		return
	}
	r.nc = &slowConn{r.nc, perSecond}
}

// takes sends requests at once, and reads the replies, which take long. Then the session must live,
// as its ephemeral znode shows.
func (r *raw) takes(requests []byte, n int, atLeast time.Duration) {
	r.t.Helper()
	begin := time.Now()
	r.writeAll(requests)
	for i := range n {
		if h, _ := r.reply(); h.Err != proto.OK || h.Xid != int32(100+i) {
			r.t.Fatalf("reply %d of %d, after %v: %+v", i, n, time.Since(begin), h)
		}
	}
	if took := time.Since(begin); took < atLeast {
		r.t.Fatalf("the replies took %v: too little to show anything", took)
	}
	r.ping()
}

// longReplies returns requests whose replies are long, by the kind of the requests. The znodes that
// they read are made first.
func longReplies(c *raw) map[string]func(n int) []byte {
	c.call(1, proto.OpCreate, create{path: "/large"})
	c.call(2, proto.OpSetData, &proto.SetDataRequest{Path: "/large", Data: make([]byte, 200_000), Version: -1})
	c.call(3, proto.OpCreate, create{path: "/list"})
	for i := range 200 {
		c.call(int32(4+i), proto.OpCreate, create{path: fmt.Sprintf("/list/%01000d", i)})
	}
	repeat := func(op proto.OpCode, body record) func(n int) []byte {
		return func(n int) (all []byte) {
			for i := range n {
				all = append(all, frame(int32(100+i), op, body)...)
			}
			return all
		}
	}
	return map[string]func(n int) []byte{
		"getData":     repeat(proto.OpGetData, &proto.PathWatchRequest{Path: "/large"}),
		"getChildren": repeat(proto.OpGetChildren, &proto.PathWatchRequest{Path: "/list"}),
		"multiRead":   repeat(proto.OpMultiRead, multi{{Op: proto.OpGetData, Path: "/large"}}),
	}
}

// A client that takes large replies slowly is alive as long as it takes some of them: its pings
// wait behind the replies.
func TestExpiry_SlowReader(t *testing.T) {
	t.Parallel()
	bubble(t, ticks, func(t *testing.T, dial func() *raw) {
		first := dial()
		first.connect(3_600_000, 0, nil)
		for kind, requests := range longReplies(first) {
			t.Log(kind)
			c := dial()
			c.connect(6_000, 0, nil)
			c.slow(1_300_000)
			c.takes(requests(100), 100, 15*time.Second)
		}
	})
}

// The same with TLS, where the server encrypts by itself.
func TestExpiry_SlowReaderWithTLS(t *testing.T) {
	certs := newCerts(t)
	cfg := ticks
	cfg.TLS = certs.server(t, tls.NoClientCert)
	tlsBubble(t, cfg, func(t *testing.T, _ *server.Server, dial func(from, address string, with *tls.Config) *raw) {
		c := dial("client", "zk:2281", nil)
		c.nc = tls.Client(&slowConn{c.nc, 1 << 40}, certs.client(t, ""))
		c.connect(6_000, 0, nil)
		requests := longReplies(c)
		c.slow(200_000)
		c.takes(requests["getData"](20), 20, 15*time.Second)
	})
}

// The same on a follower, which reports to the leader whom it heard, and for a local session.
func TestExpiry_SlowReaderOfFollower(t *testing.T) {
	for name, local := range map[string]bool{"global": false, "local": true} {
		t.Run(name, func(t *testing.T) {
			withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
				e.each(func(c *server.Config) { c.LocalSessions = local })
				e.startAll()
				e.awaitVoters(1, 2, 3)
				requests := longReplies(e.connect(e.leader(), time.Hour))
				e.sameZxid()
				c := e.connect(e.followers()[0], 6*time.Second)
				c.slow(200_000)
				c.takes(requests["getData"](20), 20, 15*time.Second)
			})
		})
	}
}

// Events that a client takes slowly do not keep its pings from being heard.
func TestExpiry_SlowReaderOfEvents(t *testing.T) {
	bubble(t, ticks, func(t *testing.T, dial func() *raw) {
		path := "/" + strings.Repeat("p", 30_000)
		writer, watcher := dial(), dial()
		writer.connect(3_600_000, 0, nil)
		writer.call(1, proto.OpCreate, create{path: path})
		watcher.connect(6_000, 0, nil)
		watcher.call(1, proto.OpAddWatch, &proto.AddWatchRequest{Path: path})
		watcher.slow(200_000)
		send := func() {
			for i := range int32(100) {
				writer.call(2+i, proto.OpSetData, &proto.SetDataRequest{Path: path, Version: -1})
			}
		}
		send()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			time.Sleep(time.Second) // the events of before are being written
			send()                  // these wait, and so does the answer to a ping
			for ping := frame(proto.XidPing, proto.OpPing, nil); ; time.Sleep(2 * time.Second) {
				if _, err := watcher.nc.Write(ping); err != nil { // waits while the connection is not read
					return
				}
			}
		}()
		for events := 0; events < 200; {
			b := watcher.recv()
			if b == nil {
				t.Fatalf("closed after %d events", events)
			}
			if int32(binary.BigEndian.Uint32(b)) == proto.XidEvent {
				events++
			}
		}
		if err := watcher.nc.Close(); err != nil {
			t.Error(err)
		}
		<-ended
		if again := dial(); again.connect(6_000, watcher.id, watcher.pass).SessionID != watcher.id {
			t.Error("the session is gone")
		}
	})
}

// The session of a client that takes nothing, or stops in the middle, expires as if the client were
// silent, whatever it has sent that was not read.
func TestExpiry_ReaderStops(t *testing.T) {
	for _, taken := range []int{0, 3_000_000} {
		t.Run(fmt.Sprint(taken), func(t *testing.T) {
			bubble(t, ticks, func(t *testing.T, dial func() *raw) {
				owner, other := dial(), dial()
				owner.connect(10_000, 0, nil)
				other.connect(3_600_000, 0, nil)
				owner.call(1, proto.OpCreate, create{path: "/e", mode: proto.ModeEphemeral})
				requests := longReplies(other)["getData"](300)
				other.call(1000, proto.OpExists, &proto.PathWatchRequest{Path: "/e", Watch: true})
				go func() {
					_, _ = owner.nc.Write(append(requests, bytes.Repeat(frame(proto.XidPing, proto.OpPing, nil), 5000)...))
				}()
				synctest.Wait()
				begin := time.Now()
				owner.slow(100_000)
				for taken := taken; taken > 0; {
					n, err := owner.nc.Read(make([]byte, 1<<10))
					if taken -= n; err != nil {
						t.Fatalf("after %v: %v", time.Since(begin), err)
					}
				}
				last := time.Now()
				if _, ev := other.event(); ev.Type != proto.EventDeleted {
					t.Errorf("%+v", ev)
				}
				if lived := time.Since(last); lived <= 9*time.Second || lived > 11*time.Second {
					t.Errorf("a session with a timeout of 10 s and a tick of 1 s lived %v after its client took something", lived)
				}
			})
		})
	}
}
