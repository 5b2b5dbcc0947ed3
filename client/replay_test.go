package client_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// reconnected sends a sync, at which the connection must break, and returns all events up to those
// that the new connection has brought.
func reconnected(t *testing.T, c *client.Client, e events) (got []client.Event) {
	t.Helper()
	if _, err := c.Sync(t.Context(), "/"); err == nil {
		t.Fatal("the connection did not break")
	}
	if _, err := c.Set(t.Context(), "/r", nil, client.AnyVersion); err != nil {
		t.Fatal(err)
	}
	if err := c.AwaitEvents(t.Context()); err != nil {
		t.Fatal(err)
	}
	for len(e) > 0 {
		got = append(got, <-e)
	}
	return got
}

// A client whose connection breaks between two events of a change asks for both again, and delivers
// each once, before the event of the connection. That event says what the server says of the rest.
func TestReconnect_CatchesUp(t *testing.T) {
	event := func(zxid proto.Zxid, typ proto.EventType, path string) []byte {
		return reply(proto.XidEvent, zxid, proto.OK, (&proto.WatcherEvent{Type: typ, State: proto.StateConnected, Path: path}).Append(nil))
	}
	for said, caughtUp := range map[string]bool{
		string(event(9, proto.EventDataChanged, proto.ReplayMark)): true,
		string(event(9, proto.EventDeleted, proto.ReplayMark)):     false,
		"": false, // ZooKeeper
	} {
		synctest.Test(t, func(t *testing.T) {
			var asked []string
			f := &fake{handshake: func(r proto.ConnectRequest) []byte {
				asked = append(asked, fmt.Sprintf("connect %d", r.LastZxidSeen))
				return welcome(r)
			}}
			f.answer = polite(func(h proto.RequestHeader, body []byte) []byte {
				switch h.Op {
				case proto.OpAddWatch:
					return reply(h.Xid, 3, proto.OK, make([]byte, 4))
				case proto.OpSync: // two of the three events of the change 5 come
					return slices.Concat(event(4, proto.EventCreated, "/r/old"),
						event(5, proto.EventDataChanged, "/r/a"), event(5, proto.EventDataChanged, "/r/a"), reply(99, 5, proto.OK, nil))
				case proto.OpSetWatches2:
					var r proto.SetWatchesRequest
					d := jute.NewDecoder(body)
					r.Decode(&d, h.Op)
					asked = append(asked, fmt.Sprintf("since %d %v %v", r.RelativeZxid, r.Persistent, r.PersistentRecursive))
					again := slices.Repeat([]byte(event(5, proto.EventDataChanged, "/r/a")), 3)
					return slices.Concat(again, event(6, proto.EventDeleted, "/r/a"), []byte(said), reply(h.Xid, 9, proto.OK, nil))
				}
				return reply(h.Xid, 9, proto.OK, make([]byte, proto.StatBytes))
			})
			c, e := connectFake(t, f)
			if err := c.AddWatch(t.Context(), "/r", proto.AddWatchPersistentRecursive); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, ev := range reconnected(t, c, e) {
				if ev.Type != client.EventSession {
					got = append(got, fmt.Sprintf("%d %v %s", ev.Zxid, ev.Type, ev.Path))
				} else {
					got = append(got, fmt.Sprintf("%v %t", ev.State, ev.CaughtUp))
				}
			}
			want := []string{
				"CONNECTED true", "4 NodeCreated /r/old", "5 NodeDataChanged /r/a", "5 NodeDataChanged /r/a", "CONNECTING false",
				"5 NodeDataChanged /r/a", "6 NodeDeleted /r/a", fmt.Sprintf("CONNECTED %t", caughtUp),
			}
			if !slices.Equal(got, want) {
				t.Errorf("after %q:\n%s\nwant\n%s", said, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if want := []string{"connect 0", "connect 5", "since 4 [/zookeeper/replay] [/r]"}; !slices.Equal(asked, want) {
				t.Errorf("asked %q, want %q", asked, want)
			}
		})
	}
}

// A connection that breaks between several requests to set watches has brought the events of some
// watches only. Those of the others are asked for again as of the time that they are known to.
func TestReconnect_BreaksWhileWatchesAreSet(t *testing.T) {
	const oneShot = proto.AddWatchMode(-1)
	for _, mode := range []proto.AddWatchMode{proto.AddWatchPersistentRecursive, oneShot} {
		synctest.Test(t, func(t *testing.T) {
			first, second := "/"+strings.Repeat("a", 200_000), "/b"
			var asked []string
			f := &fake{}
			f.answer = polite(func(h proto.RequestHeader, body []byte) []byte {
				switch h.Op {
				case proto.OpAddWatch, proto.OpGetData:
					return reply(h.Xid, 3, proto.OK, make([]byte, 4+proto.StatBytes))
				case proto.OpSync:
					return reply(99, 3, proto.OK, nil)
				case proto.OpSetWatches, proto.OpSetWatches2:
					var r proto.SetWatchesRequest
					d := jute.NewDecoder(body)
					r.Decode(&d, h.Op)
					asked = append(asked, fmt.Sprint("since ", int64(r.RelativeZxid)))
					switch len(asked) {
					case 1: // meanwhile the change 9 is told to the watch of this request
						e := proto.WatcherEvent{Type: proto.EventDataChanged, State: proto.StateConnected, Path: first}
						return slices.Concat(reply(h.Xid, 9, proto.OK, nil), reply(proto.XidEvent, 9, proto.OK, e.Append(nil)))
					case 2:
						return reply(99, 9, proto.OK, nil)
					}
					return reply(h.Xid, 9, proto.OK, nil)
				}
				return reply(h.Xid, 9, proto.OK, make([]byte, proto.StatBytes))
			})
			c, _ := connectFake(t, f)
			for _, path := range []string{first, second} {
				var err error
				if mode == oneShot {
					_, _, err = c.Get(t.Context(), path, true)
				} else {
					err = c.AddWatch(t.Context(), path, mode)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if _, err := c.Sync(t.Context(), "/"); err == nil {
				t.Fatal("the connection did not break")
			}
			_, err := c.Set(t.Context(), "/r", nil, client.AnyVersion)
			if err != nil { // it was sent before the second connection broke
				_, err = c.Set(t.Context(), "/r", nil, client.AnyVersion)
			}
			if err != nil {
				t.Fatal(err)
			}
			want := []string{"since 3", "since 3", "since 3", "since 3"}
			if mode == oneShot {
				want = want[1:] // the first watch has fired
			}
			if !slices.Equal(asked, want) {
				t.Errorf("mode %d: asked %q, want %q: changes of the second watch are lost", mode, asked, want)
			}
		})
	}
}

// The events of a znode at the path of the mark reach the watches on it: those that came before the
// answer of the server, and later ones.
func TestReconnect_ZnodeAtTheMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		event := func(zxid proto.Zxid, typ proto.EventType) []byte {
			e := proto.WatcherEvent{Type: typ, State: proto.StateConnected, Path: proto.ReplayMark}
			return reply(proto.XidEvent, zxid, proto.OK, e.Append(nil))
		}
		f := &fake{}
		f.answer = polite(func(h proto.RequestHeader, _ []byte) []byte {
			switch h.Op {
			case proto.OpAddWatch, proto.OpGetData:
				return reply(h.Xid, 3, proto.OK, make([]byte, 4+proto.StatBytes))
			case proto.OpSync:
				return reply(99, 3, proto.OK, nil)
			case proto.OpSetWatches2:
				return slices.Concat(event(proto.NoZxid, proto.EventDataChanged), event(4, proto.EventCreated),
					event(5, proto.EventDataChanged), event(5, proto.EventDeleted), reply(h.Xid, 5, proto.OK, nil), event(6, proto.EventCreated))
			}
			return reply(h.Xid, 9, proto.OK, make([]byte, proto.StatBytes))
		})
		c, e := connectFake(t, f)
		if _, _, err := c.Get(t.Context(), proto.ReplayMark, true); err != nil {
			t.Fatal(err)
		}
		if err := c.AddWatch(t.Context(), "/", proto.AddWatchPersistentRecursive); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, ev := range reconnected(t, c, e) {
			got = append(got, fmt.Sprintf("%d %d %v %t", ev.Zxid, ev.Type, ev.State, ev.CaughtUp))
		}
		want := []string{
			"-1 -1 CONNECTED true", "-1 -1 CONNECTING false", "-1 3 CONNECTED false", "4 1 CONNECTED false",
			"5 3 CONNECTED false", "-1 -1 CONNECTED false", "6 1 CONNECTED false",
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q\nwant %q", got, want)
		}
	})
}
