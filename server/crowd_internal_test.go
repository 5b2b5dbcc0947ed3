package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/capacity"
	"github.com/gozkd/gozkd/server/internal/meter"
)

// TestCrowd_EndsByItself: a server with little memory lets in as many sessions as fit. It refuses
// new sessions while clients still come back to theirs, says so, closes connections whose watches
// exceed the rest, and lets in new sessions when clients have left.
func TestCrowd_EndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startInProcess(t, Config{DataLimit: 1 << 20, MaxClientConns: -1, Tick: time.Second}, withoutMemory)
		cfg := clientOf(s)
		cfg.SessionTimeout = 10 * time.Second
		limit := capacity.CrowdLimit(1<<20, 0, false)
		within := func() {
			t.Helper()
			synctest.Wait()
			if used, _ := s.growth.crowd(false); used > limit || used < 0 {
				t.Fatalf("%d of %d bytes are in use", used, limit)
			}
		}
		var clients []*client.Client
		for len(clients) < 200 {
			c, err := client.Connect(t.Context(), cfg)
			within()
			if err != nil {
				break
			}
			clients = append(clients, c)
		}
		if n, fit := int64(len(clients)), limit/capacity.ConnectionCost; n < fit*3/4 || n >= fit {
			t.Fatalf("%d sessions of %d were let in", n, fit)
		}
		time.Sleep(2 * growthInterval)
		if f := s.Facts().Stats().Crowd; !f.Refusing || f.String() == "" || s.meter.Counted(meter.Crowded) == 0 {
			t.Errorf("it refuses, and says %+v", f)
		}
		for range 5 { // connections without a session take the room that is not for new sessions
			nc, err := s.Dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = nc.Close() }()
		}
		synctest.Wait()
		clients[0].Reconnect()
		time.Sleep(5 * time.Second)
		for i, c := range clients {
			if c.State() != client.Connected {
				t.Fatalf("client %d did not come back: %v", i, c.Err())
			}
		}
		var idle []net.Conn
		letIn := func(nc net.Conn, err error) bool {
			if err != nil {
				t.Fatal(err)
			}
			idle = append(idle, nc)
			_ = nc.SetReadDeadline(time.Now().Add(10 * time.Millisecond)) // fails if the other end is closed
			_, err = nc.Read(make([]byte, 1))
			return errors.Is(err, os.ErrDeadlineExceeded)
		}
		for letIn(s.Dial(t.Context())) { // they count as those of other clients
			if len(idle) > 100 {
				t.Fatal("connections of Dial have no bound")
			}
		}
		if !letIn(s.DialAs(t.Context(), Caller{})) {
			t.Error("a connection of DialAs was not let in")
		}
		for _, nc := range idle {
			_ = nc.Close()
		}
		for i := 0; s.meter.Counted(meter.TooManyWatches) == 0; i++ { // watches take what is left
			if i == 2000 {
				t.Fatal("nobody was disconnected for watches")
			}
			_, _, err := clients[i%20].Exists(t.Context(), fmt.Sprint("/", i), true)
			if err != nil && !errors.Is(err, proto.ErrConnectionLoss) {
				t.Fatal(err)
			}
			within()
		}
		for _, c := range clients {
			c.Detach()
		}
		time.Sleep(2 * growthInterval)
		if f := s.Facts().Stats().Crowd; f.Refusing || f.String() != "" {
			t.Errorf("all have left, and it says %+v", f)
		}
		c, err := client.Connect(t.Context(), cfg)
		if err != nil {
			t.Fatalf("all have left, and a new session is refused: %v", err)
		}
		c.Detach()
		within()
	})
}

// TestCrowd_SlowReaders: what waits for slow readers keeps out newcomers, for as long as it waits,
// but not the few who are always let in.
func TestCrowd_SlowReaders(t *testing.T) {
	s := startInProcess(t, Config{DataLimit: 64 << 20, Tick: time.Second}, withoutMemory)
	g := s.growth
	_, always := g.crowd(true)
	admits := func(what string, taken int64, want bool) {
		t.Helper()
		g.connections.Add(taken)
		defer g.connections.Add(-taken)
		if got := g.admits(capacity.NewSession, 0); got != want {
			t.Errorf("%s: admitted is %t", what, got)
		}
	}
	admits("nobody reads slowly", always, true)
	g.conns.links.Memory.Queued.Add(64 << 20)
	admits("slow readers", always, false)
	if !g.stillCrowded() {
		t.Error("the refusals end while the bytes still wait")
	}
	admits("slow readers, and few clients", 0, true)
	g.conns.links.Memory.Queued.Add(-64 << 20)
	if g.stillCrowded() {
		t.Error("the refusals do not end with the slow readers")
	}
}

// The watches of one client do not keep others out: it is disconnected before they have taken the
// room for new sessions, and the log says how much room that is.
func TestCrowd_WatchesOfFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder // written under the logger's lock
		logger := hclog.New(&hclog.LoggerOptions{Output: &log})
		s := startInProcess(t, Config{DataLimit: 1 << 20, Tick: time.Second, Logger: logger}, withoutMemory)
		connect := func() *client.Client {
			cfg := clientOf(s)
			cfg.SessionTimeout = 10 * time.Second
			c, err := client.Connect(t.Context(), cfg)
			if err != nil {
				t.Fatalf("a new session beside %d bytes of watches: %v", s.state.watches.Bytes(), err)
			}
			return c
		}
		c := connect()
		defer c.Detach()
		for i := 0; s.meter.Counted(meter.TooManyWatches) == 0; i++ {
			if i == 20_000 {
				t.Fatal("nobody was disconnected for watches")
			}
			if _, _, err := c.Exists(t.Context(), fmt.Sprint("/", i), true); err != nil && !errors.Is(err, proto.ErrConnectionLoss) {
				t.Fatal(err)
			}
			if i%200 == 0 {
				_ = connect().Close() // another will be let in, or not
			}
		}
		if err := s.Close(); err != nil { // afterwards nothing is logged
			t.Error(err)
		}
		most := capacity.CrowdLimit(1<<20, 0, false)
		if want := fmt.Sprintf("limit_bytes=%d limit_with_connections_bytes=%d", capacity.WatchLimit(most), most); !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, log.String())
		}
	})
}
