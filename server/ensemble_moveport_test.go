package server_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// A reconfig moves the client port: the previous one is closed, its connections stay. A port that
// is in use is retried, and leaves the previous one closed, as in ZooKeeper. A restart keeps the
// port.
func TestReconfig_ClientPortMoves(t *testing.T) {
	t.Parallel()
	e := newEnsemble(t, 3, nil)
	e.onDisk()
	e.each(func(c *server.Config) { c.Tick, c.NoSync, c.SuperDigest = 200*time.Millisecond, true, superDigest() })
	e.startAll()
	e.awaitVoters(1, 2, 3)
	id := e.followers()[0]
	m, admin, client := e.m(id), e.admin(e.but(id)[0]), e.connect(id, time.Minute)
	first, second := m.clientAddress, reservePort(t)
	moved := func(to string) string {
		_, before, _ := net.SplitHostPort(first)
		_, after, _ := net.SplitHostPort(to)
		return strings.TrimSuffix(m.line, before) + after
	}

	taken, err := second.Listen()
	if err != nil {
		t.Fatal(err)
	}
	admin.mustReconfig(change{joining: moved(second.Address())})
	e.awaits("the failure in the log", func() bool { return strings.Contains(e.said.String(), "cannot listen on the client address") })
	if nc, err := net.Dial("tcp", first); err == nil {
		_ = nc.Close()
		t.Error("the previous client port is open")
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	second.Yield()
	e.awaits("the new client port", func() bool { return m.s.Addr().String() == second.Address() })
	client.ping()
	m.clientAddress = second.Address()
	e.connect(id, time.Minute).ping()

	m.clientAddress = first // as its configuration says
	m.stop()
	e.start(id)
	e.awaits("the new client port after a restart", func() bool { return m.s.Addr().String() == second.Address() })

	admin.mustReconfig(change{joining: m.line})
	e.awaits("the first client port", func() bool { return m.s.Addr().String() == first })
	e.connect(id, time.Minute).ping()
	if h, _ := admin.call(2, proto.OpExists, &proto.PathWatchRequest{Path: "/"}); h.Err != proto.OK {
		t.Error(h.Err)
	}
}
