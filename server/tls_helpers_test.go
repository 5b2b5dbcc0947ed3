package server_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gozkd/gozkd/internal/memnet"
	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// certs are the certificates of a test.
type certs struct{ ca, other *testca.CA }

func newCerts(t testing.TB) certs { return certs{testca.New(t, "ca"), testca.New(t, "other")} }

// server returns the configuration of the server's side.
func (c certs) server(t testing.TB, auth tls.ClientAuthType) *tls.Config {
	cfg := c.ca.Issue(t, testca.Spec{CN: "server", Hosts: []string{"zk"}}).Server()
	cfg.ClientAuth = auth
	return cfg
}

// client returns the configuration of a client with that common name; "" has no certificate.
func (c certs) client(t testing.TB, name string) *tls.Config {
	if name == "" {
		return &tls.Config{RootCAs: c.ca.Pool(), ServerName: "zk"}
	}
	return c.ca.Issue(t, testca.Spec{CN: name}).Client("zk")
}

// startTLS starts a server with a secure port on a socket.
func startTLS(t testing.TB, cfg server.Config, with *tls.Config) *server.Server {
	t.Helper()
	cfg.TLS, cfg.SecureListen = with, "127.0.0.1:0"
	s := start(t, cfg)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// dialTLS connects, without a handshake yet. A nil cfg is no TLS.
func dialTLS(t testing.TB, address net.Addr, cfg *tls.Config) *raw {
	t.Helper()
	nc, err := net.Dial("tcp", address.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	if cfg != nil {
		nc = tls.Client(nc, cfg)
	}
	return &raw{t: t, nc: nc}
}

// tlsBubble runs a server on a network in memory: its port at zk:2181, the secure port at zk:2281.
func tlsBubble(t *testing.T, cfg server.Config, f func(t *testing.T, s *server.Server, dial func(from, address string, with *tls.Config) *raw)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(0)
		var err error
		if cfg.Listener, err = n.Listen("zk:2181"); err != nil {
			t.Fatal(err)
		}
		if cfg.SecureListener, err = n.Listen("zk:2281"); err != nil {
			t.Fatal(err)
		}
		s, err := server.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}()
		f(t, s, func(from, address string, with *tls.Config) *raw {
			t.Helper()
			nc, err := n.Dial(t.Context(), from, address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = nc.Close() })
			if with != nil {
				nc = tls.Client(nc, with)
			}
			return &raw{t: t, nc: nc}
		})
	})
}

// whoAmI returns the identities of a connection as scheme:user, sorted.
func (r *raw) whoAmI() string {
	r.t.Helper()
	h, d := r.call(99, proto.OpWhoAmI, nil)
	var resp proto.WhoAmIResponse
	if resp.Decode(d); h.Err != proto.OK || d.Err() != nil {
		r.t.Fatal(h, d.Err())
	}
	var all []string
	for _, id := range resp.IDs {
		all = append(all, id.Scheme+":"+id.ID)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// exercise does what clients do: small and long requests and replies, many at once, and events.
func (r *raw) exercise() {
	r.t.Helper()
	r.connect(60_000, 0, nil)
	dir := fmt.Sprintf("/%x", uint64(r.id))
	r.call(1, proto.OpCreate, create{path: dir})
	for _, n := range []int{0, 1, 1000, 16 << 10, 100_000, 1_000_000} {
		data := bytes.Repeat([]byte{byte(n), 1, 2}, n/3+1)
		if h, _ := r.call(2, proto.OpSetData, &proto.SetDataRequest{Path: dir, Data: data, Version: -1}); h.Err != proto.OK {
			r.t.Fatal(h.Err)
		}
		h, d := r.call(3, proto.OpGetData, &proto.PathWatchRequest{Path: dir})
		if got := d.Buffer(); h.Err != proto.OK || !bytes.Equal(got, data) {
			r.t.Fatalf("%v, %d bytes, want %d", h.Err, len(got), len(data))
		}
	}
	go func() { // ends when the server has read all, or with the connection
		for xid := range int32(300) {
			r.request(1000+xid, proto.OpExists, &proto.PathWatchRequest{Path: dir, Watch: xid == 0})
		}
	}()
	for xid := range int32(300) {
		if h, _ := r.reply(); h.Xid != 1000+xid || h.Err != proto.OK {
			r.t.Fatal(h)
		}
	}
	r.request(4, proto.OpDelete, &proto.PathVersionRequest{Path: dir, Version: -1})
	if _, e := r.event(); e.Type != proto.EventDeleted || e.Path != dir {
		r.t.Fatal(e)
	}
	if h, _ := r.reply(); h.Xid != 4 || h.Err != proto.OK {
		r.t.Fatal(h)
	}
}

// end closes the session, and returns when the server has closed the connection. A client with TLS
// is told that this is the end.
func (r *raw) end() {
	r.t.Helper()
	r.call(5, proto.OpCloseSession, nil)
	if _, err := r.nc.Read(make([]byte, 1)); !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		r.t.Errorf("at the end: %v", err)
	}
}
