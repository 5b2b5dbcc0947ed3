// Package zkleader is a ZooKeeper ensemble of one server, as an observer sees it: enough to follow
// a history that a test has made.
package zkleader

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// Txn is an encoded transaction.
type Txn struct {
	Zxid proto.Zxid
	Data []byte
}

// Leader leads until Stop or the end of the test.
type Leader struct {
	peer, election net.Listener
	running        sync.WaitGroup
	probed         chan struct{} // closed by the first connection to the election port
	stopped        chan struct{}
}

// The types of packets.
const (
	proposal, commit, newLeader, upToDate, diff, leaderInfo = 2, 4, 10, 12, 13, 17
)

// Start listens on two addresses, for other servers and for elections, and sends each observer the
// history, whose epoch is 1.
func Start(t testing.TB, peer, election string, history []Txn) *Leader {
	t.Helper()
	l := &Leader{probed: make(chan struct{}), stopped: make(chan struct{})}
	var err error
	if l.peer, err = net.Listen("tcp", peer); err != nil {
		t.Fatal(err)
	}
	if l.election, err = net.Listen("tcp", election); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Stop)
	epoch := int64(proto.MakeZxid(1, 0))
	b := packet(nil, leaderInfo, epoch, jute.AppendInt(nil, 0x10000))
	b = packet(b, diff, epoch, nil)
	for _, x := range history {
		b = packet(packet(b, proposal, int64(x.Zxid), x.Data), commit, int64(x.Zxid), nil)
	}
	_, port, _ := net.SplitHostPort(l.election.Addr().String())
	b = packet(b, newLeader, epoch, fmt.Appendf(nil, "server.1=%s:%s:participant\nversion=0", l.peer.Addr(), port))
	b = packet(b, upToDate, -1, nil)
	first := sync.OnceFunc(func() { close(l.probed) })
	// Both end with Stop, which waits for them.
	l.running.Go(func() { l.serve(l.election, func(net.Conn) { first() }) })
	l.running.Go(func() { l.serve(l.peer, func(c net.Conn) { l.lead(c, b) }) })
	return l
}

// AwaitProbe returns once somebody has looked whether this server runs.
func (l *Leader) AwaitProbe() { <-l.probed }

// Stop ends the server as a kill does.
func (l *Leader) Stop() {
	select {
	case <-l.stopped:
		return
	default:
	}
	close(l.stopped)
	_, _ = l.peer.Close(), l.election.Close() // nothing is left to do about an error
	l.running.Wait()
}

func packet(b []byte, kind int32, zxid int64, data []byte) []byte {
	return jute.AppendInt(jute.AppendBuffer(jute.AppendLong(jute.AppendInt(b, kind), zxid), data), -1)
}

// serve handles each connection until Stop.
func (l *Leader) serve(from net.Listener, handle func(net.Conn)) {
	for {
		c, err := from.Accept()
		if err != nil {
			return
		}
		// Ends with the connection, at the latest with Stop, which waits for it.
		l.running.Go(func() {
			handle(c)
			_ = c.Close() // what the other side sees is what counts
		})
	}
}

// lead sends b and keeps the connection until Stop.
func (l *Leader) lead(c net.Conn, b []byte) {
	_, _ = c.Write(b) // the observer may be gone
	over := make(chan struct{})
	// Ends with the connection; lead closes it.
	l.running.Go(func() {
		defer close(over)
		_, _ = io.Copy(io.Discard, c)
	})
	select {
	case <-over:
	case <-l.stopped:
	}
}
