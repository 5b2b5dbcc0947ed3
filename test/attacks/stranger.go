package main

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/internal/testkit/rawclient"
	"github.com/gozkd/gozkd/proto"
)

const (
	// patience bounds the wait for an answer while an attack is prepared.
	patience = 20 * time.Second
	// perAddress is how many connections the attacker makes from one address, less than the
	// servers' default bound of 60.
	perAddress = 50
	// mib is a znode's data that fits into a request of the default size.
	mib = 1<<20 - 4096
)

// pause waits a moment, so that a loop around a server that refuses everything costs little.
func (a *attacker) pause() { a.sleep(5 * time.Millisecond) }

// sleep waits until d has passed or the attack ends.
func (a *attacker) sleep(d time.Duration) { backoff.Sleep(a.ctx, d) }

// dial connects to addr. If the server is on this machine, the connections come from many loopback
// addresses, perAddress each, as those of many strangers would.
func (a *attacker) dial(addr string) (*net.TCPConn, error) {
	n := int(a.dialed.Add(1)-1) / perAddress
	return a.dialFrom(addr, 1+n%20000)
}

// dialFrom connects from the n-th address of the attacker; 0: from the address of everybody else.
func (a *attacker) dialFrom(addr string, n int) (*net.TCPConn, error) {
	d := net.Dialer{Timeout: 5 * time.Second}
	if host, _, _ := net.SplitHostPort(addr); n > 0 && host == "127.0.0.1" {
		d.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 1, byte(n>>8), byte(n))}
	}
	c, err := d.DialContext(a.ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	tcp := c.(*net.TCPConn)
	context.AfterFunc(a.ctx, func() { _ = tcp.Close() }) // whatever waits for this connection ends
	return tcp, nil
}

// retry is how long most attackers wait after a refused connection.
const retry = 100 * time.Millisecond

// withConn calls f with a connection and closes it afterwards. It waits after a refused connection.
func (a *attacker) withConn(addr string, wait time.Duration, f func(nc *net.TCPConn)) {
	nc, err := a.dial(addr)
	if err != nil {
		a.sleep(wait)
		return
	}
	defer func() { _ = nc.Close() }() // whatever was sent is sent
	f(nc)
}

// brief connects from an address of the attacker's, as dialFrom does; -1: from any, as dial does.
// No port of this machine stays in TIME_WAIT when the connection is closed.
func (a *attacker) brief(address int) (*rawclient.Conn, error) {
	var nc *net.TCPConn
	var err error
	if address < 0 {
		nc, err = a.dial(a.Addrs[0])
	} else {
		nc, err = a.dialFrom(a.Addrs[0], address)
	}
	if err != nil {
		return nil, err
	}
	return rawclient.New(nc), nc.SetLinger(0)
}

// stranger is a connection with a session.
type stranger struct {
	*rawclient.Conn
	nc   *net.TCPConn
	xid  int32
	sent []byte
}

// sessionTimeoutMs is the timeout of the sessions that strangers ask for.
const sessionTimeoutMs = 30_000

// session connects to the first server and opens a session.
func (a *attacker) session() (*stranger, error) {
	nc, err := a.dial(a.Addrs[0])
	if err != nil {
		return nil, err
	}
	s := &stranger{Conn: rawclient.New(nc), nc: nc}
	if _, err := s.Handshake(rawclient.NewSession(sessionTimeoutMs), patience); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// withSession calls f with a session, and closes the connection. An attacker expects errors.
func (a *attacker) withSession(f func(s *stranger)) {
	if s, err := a.session(); err == nil {
		defer func() { _ = s.Close() }() // whatever was sent is sent
		f(s)
	}
}

// deaf makes the kernel take as little as possible from the server for a client that does not read.
func (s *stranger) deaf() { _ = s.nc.SetReadBuffer(1024) } // it is only a wish

// add queues a request until flush.
func (s *stranger) add(op proto.OpCode, body []byte) {
	s.xid++
	s.sent = rawclient.AppendRequest(s.sent, s.xid, op, body)
}

// flush sends the queued requests.
func (s *stranger) flush() error {
	err := s.Write(s.sent, patience)
	s.sent = s.sent[:0]
	return err
}

// call sends a request and returns the body of its reply, as Call of rawclient.Conn does.
func (s *stranger) call(op proto.OpCode, body []byte) ([]byte, error) {
	s.xid++
	return s.Call(s.xid, op, body, patience)
}

// discard reads n bytes of replies, or everything if n is negative, and throws them away.
func (s *stranger) discard(n int64) error {
	if err := s.nc.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	if n < 0 {
		_, err := io.Copy(io.Discard, s.nc)
		return err
	}
	_, err := io.CopyN(io.Discard, s.nc, n)
	return err
}

// replies reads n frames and throws them away.
func (s *stranger) replies(n int) error {
	for range n {
		if _, err := s.ReadFrame(time.Minute); err != nil {
			return err
		}
	}
	return nil
}

// create creates a znode that everybody may use; an existing znode is fine.
func (s *stranger) create(path string, data []byte) error {
	return s.createWith(path, data, proto.OpenACL())
}

func (s *stranger) createWith(path string, data []byte, acl []proto.ACL) error {
	_, err := s.call(proto.OpCreate, (&proto.CreateRequest{Path: path, Data: data, ACL: acl}).Append(nil, proto.OpCreate))
	if err == proto.ErrNodeExists { //nolint:errorlint // replies have exactly this error
		return nil
	}
	return err
}

func setData(path string, data []byte) []byte {
	return (&proto.SetDataRequest{Path: path, Data: data, Version: -1}).Append(nil)
}

func getData(path string) []byte { return (&proto.PathWatchRequest{Path: path}).Append(nil) }

// prepare opens a session for the preparation of an attack, or ends the attack.
func (a *attacker) prepare() *stranger { return must.Get(a.session()) }

// createLargest calls create with n, and then with half as much each, until create succeeds:
// servers bound what they take. It returns the accepted size.
func (a *attacker) createLargest(n int, create func(s *stranger, n int) error) int {
	s := a.prepare()
	defer must.Finally(func() error { return s.Close() }) // s changes
	var err error
	for ; n > 0; n /= 2 {
		if err = create(s, n); err == nil {
			return n
		}
		_ = s.Close() // a request that is too large ends the connection
		s = a.prepare()
	}
	must.Failf("nothing was accepted, at last: %w", err)
	return 0
}

// multiOf returns the body of a multi or multiRead of n operations.
func multiOf(n int, op func(i int) proto.MultiOp) []byte {
	var r proto.MultiRequest
	for i := range n {
		r.Ops = append(r.Ops, op(i))
	}
	return r.Append(nil)
}

// createOp returns the operation of a multi that creates a znode that everybody may use.
func createOp(path string) proto.MultiOp {
	return proto.MultiOp{Op: proto.OpCreate, Path: path, ACL: proto.OpenACL()}
}

// header returns a frame's length.
func header(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
