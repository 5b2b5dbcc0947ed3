package server_test

import (
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// A znode that many slow clients have asked for is in memory once, and counts once: nobody is
// disconnected.
func TestClientMemory_ManySlowReadersOfOneZnode(t *testing.T) {
	cfg := ticks
	cfg.MaxClientConns = -1
	serverBubble(t, cfg, func(t *testing.T, s *server.Server, dial func() *raw) {
		const n, size = 400, 1_000_000
		data := make([]byte, size)
		writer := dial()
		writer.connect(3_600_000, 0, nil)
		writer.call(1, proto.OpCreate, create{path: "/a"})
		writer.call(2, proto.OpSetData, &proto.SetDataRequest{Path: "/a", Data: data, Version: -1})
		get := frame(1, proto.OpGetData, &proto.PathWatchRequest{Path: "/a"})
		var slow []*raw
		for range n {
			c := dial()
			c.connect(3_600_000, 0, nil)
			if _, err := c.nc.Write(get); err != nil {
				t.Fatal(err)
			}
			slow = append(slow, c)
		}
		if unread, _ := holds(t, s); unread < size || unread > size+n*8<<10 {
			t.Errorf("%d clients that wait for the same %d bytes hold %d", n, size, unread)
		}
		if n := counted(s)[slowClients]; n != 0 {
			t.Errorf("%d clients were disconnected as slow", n)
		}
		for i, c := range slow {
			if i%100 == 0 { // reading all takes long
				if h, body := c.reply(); h.Err != proto.OK || len(body.Rest()) != 4+size+proto.StatBytes {
					t.Errorf("client %d: %v, %d bytes", i, h, len(body.Rest()))
				}
			}
			_ = c.nc.Close()
		}
		if unread, queued := holds(t, s); unread != 0 || queued != 0 {
			t.Errorf("%d and %d bytes are held at the end", unread, queued)
		}
	})
}

// Data that was replaced while clients wait for it is in memory for them alone: it counts for each
// version, and the slowest clients are disconnected.
func TestClientMemory_SlowReadersOfReplacedData(t *testing.T) {
	cfg := littleMemory()
	serverBubble(t, cfg, func(t *testing.T, s *server.Server, dial func() *raw) {
		const n, size = 60, 50_000
		writer := dial()
		writer.connect(3_600_000, 0, nil)
		writer.call(1, proto.OpCreate, create{path: "/a"})
		get := frame(1, proto.OpGetData, &proto.PathWatchRequest{Path: "/a"})
		var last *raw
		for i := range int32(n) {
			if h, _ := writer.call(2+i, proto.OpSetData, &proto.SetDataRequest{Path: "/a", Data: make([]byte, size), Version: -1}); h.Err != proto.OK {
				t.Fatal(h)
			}
			for range 2 { // two clients for each version
				last = dial()
				last.connect(3_600_000, 0, nil)
				if _, err := last.nc.Write(get); err != nil {
					t.Fatal(err)
				}
			}
			if unread, _ := holds(t, s); unread > cfg.ClientMemory {
				t.Fatalf("after %d versions clients hold %d bytes, allowed are %d", i, unread, cfg.ClientMemory)
			}
			time.Sleep(time.Millisecond) // the bubble's: who waits longer is slower
		}
		// Of each version 50,000 bytes, and two buffers of up to 8 KiB: 6 to 9 versions are left.
		if left := 2*n - counted(s)[slowClients]; left < 12 || left > 18 {
			t.Errorf("%d slow clients are left", left)
		}
		if h, body := last.reply(); h.Err != proto.OK || len(body.Rest()) != 4+size+proto.StatBytes {
			t.Errorf("the last client got %v, %d bytes", h, len(body.Rest()))
		}
	})
}
