package server_test

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// A client that has sent more than the server read gets all of the last answer, and then the end of
// the stream, not a reset that would cut the answer.
func TestLastAnswer_NotCut(t *testing.T) {
	certs := newCerts(t)
	s := startTLS(t, server.Config{Words: []string{"ruok"}}, certs.server(t, 0))
	hello := frameOf((&proto.ConnectRequest{TimeoutMs: 30_000, Passwd: make([]byte, proto.PasswdBytes)}).Append(nil))
	claim := frameOf((&proto.ConnectRequest{TimeoutMs: 30_000, SessionID: 77, Passwd: make([]byte, proto.PasswdBytes)}).Append(nil))
	read := frame(1, proto.OpExists, &proto.PathWatchRequest{Path: "/"})
	const connected, header, stat = 4 + 36, 4 + proto.ReplyHeaderBytes, 68
	for name, c := range map[string]struct {
		port net.Addr
		sent []byte
		want int // bytes
	}{
		"a word":                    {s.Addr(), []byte("ruok"), len("imok")},
		"a word that is refused":    {s.Addr(), []byte("wchs"), len("wchs is not executed because it is not in the whitelist.\n")},
		"a session that is over":    {s.Addr(), claim, connected},
		"the end of a session":      {s.Addr(), append(bytes.Clone(hello), frame(1, proto.OpCloseSession, nil)...), connected + header},
		"an unknown request":        {s.Addr(), append(bytes.Clone(hello), frame(1, 4711, nil)...), connected + header},
		"a frame that is too large": {s.Addr(), append(append(bytes.Clone(hello), read...), 0x7f, 0, 0, 0), connected + header + stat},
		"a TLS alert":               {s.SecureAddr(), []byte{0x16, 3, 1, 1, 0}, 7},
	} {
		t.Run(name, func(t *testing.T) {
			nc, err := net.Dial("tcp", c.port.String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = nc.Close() }()
			if _, err := nc.Write(append(bytes.Clone(c.sent), make([]byte, 60_000)...)); err != nil {
				t.Fatal(err)
			}
			if answer, err := io.ReadAll(nc); err != nil || len(answer) != c.want {
				t.Errorf("%d bytes, want %d: %v", len(answer), c.want, err)
			}
		})
	}
}

// A client that got its last answer and does not end its stream does not keep the next client out.
func TestLastAnswer_ClientStays(t *testing.T) {
	s := start(t, server.Config{MaxClientConns: 1})
	for range 3 {
		nc, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = nc.Close() }()
		if _, err := nc.Write([]byte("srvr")); err != nil {
			t.Fatal(err)
		}
		if answer, err := io.ReadAll(nc); err != nil || len(answer) == 0 {
			t.Errorf("%q, %v", answer, err)
		}
	}
}

// A client that ends its stream after its connect request gets the answer. A client that is refused
// and stays silent does not keep its connection for the time of a handshake.
func TestConnectRequest_Last(t *testing.T) {
	s := start(t, server.Config{HandshakeTimeout: time.Hour})
	for name, ends := range map[string]bool{"the stream ends": true, "a session that is over": false} {
		t.Run(name, func(t *testing.T) {
			nc, err := net.Dial("tcp", s.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = nc.Close() }()
			request := proto.ConnectRequest{TimeoutMs: 30_000, Passwd: make([]byte, proto.PasswdBytes)}
			if !ends {
				request.SessionID = 77
			}
			if _, err := nc.Write(frameOf(request.Append(nil))); err != nil {
				t.Fatal(err)
			}
			if ends {
				if err := nc.(*net.TCPConn).CloseWrite(); err != nil {
					t.Fatal(err)
				}
			}
			if answer, err := io.ReadAll(nc); err != nil || len(answer) != 4+36 {
				t.Errorf("%d bytes: %v", len(answer), err)
			}
			for s.Facts().Stats().Connections > 0 {
				time.Sleep(time.Millisecond)
			}
		})
	}
}

// A client that claims a session while the session ends is refused when that is applied, and if the
// client stays silent, its connection ends then, too.
func TestConnectRequest_SessionEnds(t *testing.T) {
	s := start(t, server.Config{HandshakeTimeout: time.Hour, MaxClientConns: -1})
	for range 300 {
		a, b := dialTLS(t, s.Addr(), nil), dialTLS(t, s.Addr(), nil)
		a.connect(30_000, 0, nil)
		if _, err := a.nc.Write(frame(1, proto.OpCloseSession, nil)); err != nil {
			t.Fatal(err)
		}
		if b.connect(30_000, a.id, a.pass).TimeoutMs > 0 {
			_ = b.nc.Close()
		}
	}
	for s.Facts().Stats().Connections > 0 {
		time.Sleep(time.Millisecond)
	}
}
