package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/internal/testkit/rawclient"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
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
func (a *attacker) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-a.ctx.Done():
	}
}

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

// stranger is a connection with a session.
type stranger struct {
	*rawclient.Conn
	nc   *net.TCPConn
	xid  int32
	sent []byte
}

// session connects to the first server and opens a session.
func (a *attacker) session() (*stranger, error) { return a.sessionAt(a.Addrs[0]) }

func (a *attacker) sessionAt(addr string) (*stranger, error) {
	nc, err := a.dial(addr)
	if err != nil {
		return nil, err
	}
	s := &stranger{Conn: rawclient.New(nc), nc: nc}
	_, err = s.Handshake(&proto.ConnectRequest{TimeoutMs: 30000, Passwd: make([]byte, proto.PasswdBytes)}, patience)
	if err != nil {
		_ = s.Close() // the handshake failed already
		return nil, err
	}
	return s, nil
}

// withSession calls f with a session and closes the connection afterwards. Errors are what an
// attacker expects.
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

// call sends a request and returns the body of its reply. Events are skipped. The error may be a
// proto.ErrCode.
func (s *stranger) call(op proto.OpCode, body []byte) ([]byte, error) {
	s.add(op, body)
	if err := s.flush(); err != nil {
		return nil, err
	}
	return s.reply()
}

// reply returns the body of the next reply.
func (s *stranger) reply() ([]byte, error) {
	for {
		frame, err := s.ReadFrame(patience)
		if err != nil {
			return nil, err
		}
		d := jute.NewDecoder(frame)
		var h proto.ReplyHeader
		if h.Decode(&d); d.Err() != nil {
			return nil, d.Err()
		}
		switch {
		case h.Xid < 0:
		case h.Err != 0:
			return nil, h.Err
		default:
			return d.Rest(), nil
		}
	}
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

// set sets a znode's data.
func (s *stranger) set(path string, data []byte) error {
	_, err := s.call(proto.OpSetData, setData(path, data))
	return err
}

func setData(path string, data []byte) []byte {
	return (&proto.SetDataRequest{Path: path, Data: data, Version: -1}).Append(nil)
}

func getData(path string) []byte { return (&proto.PathWatchRequest{Path: path}).Append(nil) }

// prepare opens a session for the preparation of an attack, or ends the attack.
func (a *attacker) prepare() *stranger { return must.Get(a.session()) }

// largest calls try with n, and then with half as much each, until try succeeds: servers bound what
// they take. It returns the accepted size.
func largest(n int, try func(n int) error) int {
	var err error
	for ; n > 0; n /= 2 {
		if err = try(n); err == nil {
			return n
		}
	}
	must.Do(fmt.Errorf("nothing was accepted, at last: %w", err))
	return 0
}

// header returns a frame's length.
func header(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
