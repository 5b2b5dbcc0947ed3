package client_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// fake is a server whose replies the test chooses.
type fake struct {
	handshake func(proto.ConnectRequest) []byte               // returns the whole reply; nil closes the connection
	answer    func(h proto.RequestHeader, body []byte) []byte // the same after the handshake
	isro      string                                          // reply to the four-letter word
	all       sync.WaitGroup
}

// welcome is the reply of a good server to a handshake.
func welcome(proto.ConnectRequest) []byte {
	return framed((&proto.ConnectResponse{TimeoutMs: 9000, SessionID: 77, Passwd: make([]byte, 16), HasReadOnly: true}).Append(nil))
}

// refusal is the reply of any server to a client whose session is over.
var refusal = framed((&proto.ConnectResponse{Passwd: make([]byte, 16)}).Append(nil))

func framed(payload []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(payload))), payload...)
}

// reply returns a reply frame.
func reply(xid int32, zxid proto.Zxid, code proto.ErrCode, body []byte) []byte {
	return framed(append((&proto.ReplyHeader{Xid: xid, Zxid: zxid, Err: code}).Append(nil), body...))
}

// polite answers closeSession and pings, and passes other requests to f.
func polite(f func(h proto.RequestHeader, body []byte) []byte) func(h proto.RequestHeader, body []byte) []byte {
	return func(h proto.RequestHeader, body []byte) []byte {
		switch h.Op {
		case proto.OpCloseSession:
			return reply(h.Xid, 1, proto.OK, nil)
		case proto.OpPing:
			return reply(proto.XidPing, 0, proto.OK, nil)
		}
		return f(h, body)
	}
}

func (f *fake) Dial(context.Context, string) (net.Conn, error) {
	near, far := net.Pipe()
	f.all.Go(func() { // ends when either side closes; awaited at the end of the test
		defer func() { _ = far.Close() }()
		f.serve(far)
	})
	return likeSocket{near}, nil
}

func (f *fake) serve(conn net.Conn) {
	var head [4]byte
	for first := true; ; first = false {
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return
		}
		if string(head[:]) == "isro" {
			_, _ = io.WriteString(conn, f.isro)
			return
		}
		b := make([]byte, binary.BigEndian.Uint32(head[:]))
		if _, err := io.ReadFull(conn, b); err != nil {
			return
		}
		d := jute.NewDecoder(b)
		var out []byte
		if first {
			var r proto.ConnectRequest
			r.Decode(&d)
			out = f.handshake(r)
			if bytes.Equal(out, refusal) { // servers close the connection then
				_, _ = conn.Write(out)
				return
			}
		} else {
			var h proto.RequestHeader
			h.Decode(&d)
			out = f.answer(h, d.Rest())
		}
		if out == nil {
			return
		}
		if len(out) == 0 { // a pipe would deliver even an empty write
			continue
		}
		if _, err := conn.Write(out); err != nil {
			return
		}
	}
}

// connectFake returns a client of a fake server. Both end with the test.
func connectFake(t testing.TB, f *fake, change ...func(*client.Config)) (*client.Client, events) {
	t.Helper()
	if f.handshake == nil {
		f.handshake = welcome
	}
	e := make(events, 10000)
	cfg := client.Config{
		Servers: []string{"fake:1"}, Dial: f.Dial, OnEvent: func(ev client.Event) { e <- ev }, ConnectTimeout: time.Second, MaxBuffer: 1 << 20,
	}
	for _, c := range change {
		c(&cfg)
	}
	c, err := client.Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close() // a hostile server may make Close fail
		f.all.Wait()
	})
	return c, e
}

// TestHostileReplies: a malformed reply breaks the connection, with a reason, and does nothing
// else.
func TestHostileReplies(t *testing.T) {
	for _, c := range []struct {
		name string
		out  []byte
		want string
	}{
		{"negative length", []byte{0xff, 0xff, 0xff, 0xff}, "a frame of -1 bytes"},
		{"length above the limit", []byte{0x7f, 0xff, 0xff, 0xff}, "2147483647 bytes is too large: the limit is 1048576"},
		{"length that is a lie", append([]byte{0, 0x0f, 0, 0}, "short"...), "frame of 983040"},
		{"short header", framed([]byte{1, 2, 3}), "malformed"},
		{"wrong xid", reply(99, 1, proto.OK, nil), "a reply to request 99, which is not the next"},
		{"event without a body", reply(proto.XidEvent, 1, proto.OK, []byte{1}), "event:"},
		{"unasked answer to a credential", reply(proto.XidAuth, 0, proto.OK, nil), "a credential that was not sent"},
		{"refused watches", reply(proto.XidSetWatches, 0, proto.ErrUnimplemented, nil), "watches can't be set again"},
		{"nothing", nil, "the server closed the connection"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hit := false
				cl, _ := connectFake(t, &fake{answer: func(h proto.RequestHeader, body []byte) []byte {
					switch {
					case !hit:
						hit = true
						return c.out
					case h.Op == proto.OpPing: // from a client that waits for the rest of a frame
						return nil
					}
					return polite(func(h proto.RequestHeader, _ []byte) []byte {
						return reply(h.Xid, 1, proto.OK, make([]byte, proto.StatBytes))
					})(h, body)
				}})
				_, err := cl.Set(t.Context(), "/a", nil, -1)
				var e *client.Error
				if !errors.As(err, &e) || e.Code != proto.ErrConnectionLoss || !e.Unknown || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v", err)
				}
				if _, err := cl.Set(t.Context(), "/a", nil, -1); err != nil {
					t.Errorf("on the next connection: %v", err)
				}
			})
		})
	}
}

// TestHostileHandshakes: a bad handshake gives no session, and the error has the reason.
func TestHostileHandshakes(t *testing.T) {
	for _, c := range []struct {
		name string
		out  []byte
		want string
	}{
		{"too long", []byte{0, 1, 0, 0}, "the reply of 65536 bytes is too large"},
		{"cut", framed([]byte{0, 0, 0, 0}), "malformed"},
		{"refused", refusal, "session expired"},
		{"read-only unasked", framed((&proto.ConnectResponse{TimeoutMs: 1, SessionID: 1, ReadOnly: true, HasReadOnly: true}).Append(nil)), "read-only"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fake{handshake: func(proto.ConnectRequest) []byte { return c.out }}
			_, err := client.Connect(t.Context(), client.Config{Servers: []string{"fake:1"}, Dial: f.Dial})
			if err == nil || !strings.Contains(err.Error(), "fake:1: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
			f.all.Wait()
		})
	}
}

// TestBadBody: a well-placed reply with a malformed body fails its own call only.
func TestBadBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := connectFake(t, &fake{answer: polite(func(h proto.RequestHeader, _ []byte) []byte {
			return reply(h.Xid, 1, proto.OK, []byte{0x7f, 0xff, 0xff, 0xff})
		})})
		before := c.Session()
		_, _, err := c.Get(t.Context(), "/a", false)
		_, _, errKids := c.Children(t.Context(), "/a", false)
		_, errMulti := c.Multi(t.Context(), client.DeleteOp("/a", -1))
		for _, err := range []error{err, errKids, errMulti} {
			if !errors.Is(err, proto.ErrMarshallingError) {
				t.Errorf("%v", err)
			}
		}
		if after := c.Session(); after.Server == "" || after.ID != before.ID {
			t.Errorf("%+v", after)
		}
	})
}

// TestAnotherSession: if a server resumes a session with a new one, the old one has ended.
func TestAnotherSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := proto.SessionID(76)
		c, e := connectFake(t, &fake{
			handshake: func(proto.ConnectRequest) []byte {
				id++
				return framed((&proto.ConnectResponse{TimeoutMs: 9000, SessionID: id, Passwd: make([]byte, 16)}).Append(nil))
			},
			answer: func(proto.RequestHeader, []byte) []byte { return nil },
		})
		if err := c.Delete(t.Context(), "/a", -1); !errors.Is(err, proto.ErrConnectionLoss) {
			t.Errorf("%v", err)
		}
		e.awaitState(t, client.Expired)
	})
}

// TestSilence: a server without replies is left after half of the timeout, whether pings were
// sent or not.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var answers atomic.Bool
		_, e := connectFake(t, &fake{answer: func(h proto.RequestHeader, _ []byte) []byte {
			if !answers.Load() {
				return []byte{}
			}
			return polite(nil)(h, nil)
		}})
		e.awaitState(t, client.Connected)
		e.awaitState(t, client.Connecting)
		if took := time.Since(start); took != 4500*time.Millisecond {
			t.Errorf("left after %v of a timeout of 9 s", took)
		}
		answers.Store(true)
		e.awaitState(t, client.Connected)
	})
}

// TestUnwantedEvents: events for paths without a watch are dropped.
func TestUnwantedEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		event := func(typ proto.EventType, path string) []byte {
			return reply(proto.XidEvent, 5, proto.OK, (&proto.WatcherEvent{Type: typ, State: proto.StateConnected, Path: path}).Append(nil))
		}
		c, e := connectFake(t, &fake{answer: polite(func(h proto.RequestHeader, _ []byte) []byte {
			return slices.Concat(event(proto.EventDataChanged, "/x"), reply(h.Xid, 1, proto.ErrNoNode, nil),
				event(proto.EventChildrenChanged, "/w"), event(proto.EventCreated, "/w"), event(proto.EventDataChanged, "/w"))
		})})
		if _, _, err := c.Exists(t.Context(), "/w", true); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		close(e)
		var delivered []client.Event
		for ev := range e {
			if ev.Type != client.EventSession {
				delivered = append(delivered, ev)
			}
		}
		want := []client.Event{{Type: proto.EventCreated, State: client.Connected, Path: "/w", Zxid: 5}}
		if !slices.Equal(delivered, want) {
			t.Errorf("%+v", delivered)
		}
	})
}

// TestSlowOnEvent: while thousands of events wait, the connection is not read, and no event is lost
// or reordered.
func TestSlowOnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 20_000
		sent := 0
		gate := make(chan struct{})
		var got []proto.Zxid
		f := &fake{}
		f.answer = polite(func(h proto.RequestHeader, _ []byte) []byte {
			out := reply(h.Xid, 1, proto.OK, make([]byte, 4)) // to addWatch
			for range n {
				sent++
				out = append(out, reply(proto.XidEvent, proto.Zxid(sent), proto.OK,
					(&proto.WatcherEvent{Type: proto.EventDataChanged, State: 3, Path: "/w"}).Append(nil))...)
			}
			return out
		})
		c, _ := connectFake(t, f, func(cfg *client.Config) {
			cfg.OnEvent = func(e client.Event) {
				<-gate
				if e.Type != client.EventSession {
					got = append(got, e.Zxid)
				}
			}
		})
		if err := c.AddWatch(t.Context(), "/w", proto.AddWatchPersistent); err != nil {
			t.Fatal(err)
		}
		close(gate)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if len(got) != n || !slices.IsSorted(got) {
			t.Errorf("%d of %d events, in order: %v", len(got), n, slices.IsSorted(got))
		}
	})
}

// TestLastZxid: the first handshake claims what Config says, which LastZxid reports.
func TestLastZxid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var claimed proto.Zxid
		f := &fake{answer: polite(nil), handshake: func(r proto.ConnectRequest) []byte {
			claimed = r.LastZxidSeen
			return framed((&proto.ConnectResponse{TimeoutMs: 9000, SessionID: 1, Passwd: make([]byte, 16)}).Append(nil))
		}}
		c, _ := connectFake(t, f, func(cfg *client.Config) { cfg.LastZxid = 7 })
		if claimed != 7 || c.LastZxid() != 7 {
			t.Errorf("claimed %#x, and the Client says %#x", claimed, c.LastZxid())
		}
	})
}

// TestReadOnly: a server without a quorum is left when another has one. The session is unknown to
// the other server and is not sent to it.
func TestReadOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var askedFor []proto.SessionID
		servers := map[string]*fake{}
		for _, name := range []string{"ro:1", "rw:1"} {
			ro := name == "ro:1"
			servers[name] = &fake{
				isro: name[:2],
				handshake: func(r proto.ConnectRequest) []byte {
					askedFor = append(askedFor, r.SessionID)
					return framed((&proto.ConnectResponse{
						TimeoutMs: 9000, SessionID: proto.SessionID(len(askedFor)), Passwd: make([]byte, 16), ReadOnly: ro, HasReadOnly: true,
					}).Append(nil))
				},
				answer: polite(nil),
			}
		}
		var up atomic.Bool
		f := &fake{}
		_, e := connectFake(t, f, func(cfg *client.Config) {
			cfg.Servers, cfg.ReadOnly = []string{"ro:1", "rw:1"}, true
			cfg.Dial = func(ctx context.Context, address string) (net.Conn, error) {
				if !up.Load() && address == "rw:1" {
					return nil, errDown
				}
				return servers[address].Dial(ctx, address)
			}
		})
		e.awaitState(t, client.ReadOnly)
		time.Sleep(time.Hour)
		up.Store(true)
		e.awaitState(t, client.Connected)
		if !slices.Equal(askedFor, []proto.SessionID{0, 0}) {
			t.Errorf("asked for sessions %v", askedFor)
		}
	})
}
