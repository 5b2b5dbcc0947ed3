package server_test

import (
	"bytes"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// Clients that never take their replies, and those that stop within a frame, do not keep the few
// large buffers of a server with many connections.
func TestLargeBuffers_GivenBack(t *testing.T) {
	s := start(t, server.Config{ClientMemory: 8 << 20, MaxClientConns: -1, MaxSessionTimeout: time.Hour})
	dial := func() *raw {
		nc, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = nc.Close() })
		c := &raw{t: t, nc: nc}
		c.connect(3_600_000, 0, nil)
		return c
	}
	first := dial()
	first.call(1, proto.OpCreate, &createRecord{proto.CreateRequest{Path: "/z", Data: make([]byte, 10_000), ACL: proto.OpenACL()}, proto.OpCreate})
	for range 40 { // now there are many
		dial()
	}
	get := frame(1, proto.OpGetData, &proto.PathWatchRequest{Path: "/z"})
	for i := range 20 {
		c := dial()
		if i%2 == 0 {
			get := bytes.Repeat(get, 20_000)
			go func() { _, _ = c.nc.Write(get) }() // ends with the connection
		} else if _, err := c.nc.Write(frame(1, proto.OpGetData, &proto.PathWatchRequest{Path: "/" + strings.Repeat("z", 30_000)})[:25_000]); err != nil {
			t.Fatal(err)
		}
	}
	late := watchdog.After(t, 3*time.Second)
	for waits, large := 0, 0; large > 0 || waits < 20; {
		select {
		case <-late:
			t.Fatalf("%d clients do not read, or stop within a frame; %d large buffers are held", waits, large)
		case <-time.After(time.Millisecond):
		}
		waits, large = server.AwaitedClients(s)
	}
	first.call(1, proto.OpExists, &proto.PathWatchRequest{Path: "/z"})
}
