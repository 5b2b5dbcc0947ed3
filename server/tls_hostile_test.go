package server_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// Unfinished handshakes are counted like other unread memory, and are bounded with it.
func TestTLS_HandshakesCountAsMemory(t *testing.T) {
	c := newCerts(t)
	cfg := littleMemory()
	cfg.TLS = c.server(t, tls.NoClientCert)
	tlsBubble(t, cfg, func(t *testing.T, s *server.Server, dial func(string, string, *tls.Config) *raw) {
		good := dial("client", "zk:2281", c.client(t, ""))
		good.connect(3_600_000, 0, nil)
		hello := []byte("\x16\x03\x01\x3f\xf0\x01\x00\xff\xf0" + strings.Repeat("x", 0x3ff0-4))
		var all []*raw
		for i := range 40 {
			r := dial("mallory", "zk:2281", nil)
			all = append(all, r)
			for range 3 { // 48 KiB of a hello of 64 KiB
				_, _ = r.nc.Write(hello) // fails if the server has closed it
				hello[5], hello[6], hello[7], hello[8] = 'x', 'x', 'x', 'x'
			}
			copy(hello[5:], "\x01\x00\xff\xf0")
			if unread, _ := holds(t, s); unread > cfg.ClientMemory {
				t.Fatalf("after %d handshakes clients hold %d bytes, allowed are %d", i+1, unread, cfg.ClientMemory)
			}
		}
		if n := counted(s); n[slowClients] == 0 || n["outstanding_tls_handshake"] == 0 {
			t.Errorf("%d closed, %d under way: want some of both", n[slowClients], n["outstanding_tls_handshake"])
		}
		// A request in a pipe arrives in parts and counts, too: with a full budget it could be the
		// largest.
		for _, r := range all {
			_ = r.nc.Close()
		}
		if unread, _ := holds(t, s); unread != 0 {
			t.Errorf("clients hold %d bytes after the end of the handshakes", unread)
		}
		good.ping()
	})
}

// A client on a socket that does not read its replies costs others nothing, and is disconnected
// when the memory of all clients is used up. Everything is given back.
func TestTLS_ClientsThatDoNotRead(t *testing.T) {
	c := newCerts(t)
	s := startTLS(t, server.Config{MaxBuffer: 1 << 20, ClientMemory: 8 << 20, MaxClientConns: -1}, c.server(t, tls.NoClientCert))
	znodes := map[string][]byte{}
	for i := range 16 { // not one for all: shared data counts once
		znodes[fmt.Sprintf("/long%02d", i)] = make([]byte, 900_000)
	}
	if err := s.Load(t.Context(), znodes); err != nil {
		t.Fatal(err)
	}
	good := dialTLS(t, s.SecureAddr(), c.client(t, ""))
	good.connect(60_000, 0, nil)
	var lazy []*raw
	for path := range znodes {
		r := dialTLS(t, s.SecureAddr(), c.client(t, ""))
		r.connect(60_000, 0, nil)
		go func() { // ends when the server has read it, or has closed the connection
			b := (&proto.PathWatchRequest{Path: path}).Append((&proto.RequestHeader{Xid: 1, Op: proto.OpGetData}).Append([]byte{0, 0, 0, 0}))
			b[3] = byte(len(b) - 4)
			_, _ = r.nc.Write(bytes.Repeat(b, 40))
		}()
		lazy = append(lazy, r)
	}
	for xid := int32(1); counted(s)[slowClients] == 0; xid++ {
		good.call(xid, proto.OpExists, &proto.PathWatchRequest{Path: "/"})
	}
	for _, r := range lazy {
		_ = r.nc.(*tls.Conn).NetConn().Close()
	}
	for xid := int32(1); ; xid++ {
		good.call(xid, proto.OpExists, &proto.PathWatchRequest{Path: "/"})
		unread, queued, err := server.ClientMemory(s)
		if s.Facts().Stats().Connections == 1 && unread == 0 && queued == 0 && err == nil {
			break
		}
	}
}

// rekeyer is a client that writes TLS 1.3 records by itself.
type rekeyer struct {
	secret []byte
	aead   cipher.AEAD
	iv     []byte
	seq    uint64
}

func newRekeyer(t *testing.T, secret []byte) *rekeyer {
	k := &rekeyer{secret: secret}
	k.derive(t)
	return k
}

// label is HKDF-Expand-Label of RFC 8446.
func (k *rekeyer) label(t *testing.T, name string, n int) []byte {
	info := binary.BigEndian.AppendUint16(nil, uint16(n))
	info = append(info, byte(len("tls13 "+name)))
	info = append(append(info, "tls13 "+name...), 0)
	out, err := hkdf.Expand(sha256.New, k.secret, string(info), n)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (k *rekeyer) derive(t *testing.T) {
	block, err := aes.NewCipher(k.label(t, "key", 16))
	if err != nil {
		t.Fatal(err)
	}
	if k.aead, err = cipher.NewGCM(block); err != nil {
		t.Fatal(err)
	}
	k.iv, k.seq = k.label(t, "iv", 12), 0
}

func (k *rekeyer) record(content []byte, typ byte) []byte {
	nonce := bytes.Clone(k.iv)
	for i := range 8 {
		nonce[4+i] ^= byte(k.seq >> (56 - 8*i))
	}
	k.seq++
	plain := append(bytes.Clone(content), typ)
	head := []byte{23, 3, 3, byte((len(plain) + 16) >> 8), byte(len(plain) + 16)}
	return k.aead.Seal(head, nonce, plain, head)
}

// update returns a KeyUpdate that asks for an update in return.
func (k *rekeyer) update(t *testing.T) []byte {
	b := k.record([]byte{24, 0, 0, 1, 1}, 22)
	k.secret = k.label(t, "traffic upd", 32)
	k.derive(t)
	return b
}

// secrets gets the key log of a client.
type secrets struct{ client []byte }

func (s *secrets) Write(line []byte) (int, error) {
	if f := strings.Fields(string(line)); f[0] == "CLIENT_TRAFFIC_SECRET_0" {
		var err error
		if s.client, err = hex.DecodeString(f[2]); err != nil {
			return 0, err
		}
	}
	return len(line), nil
}

// A client that asks for new keys again and again and does not read the answers is not read either.
func TestTLS_KeyUpdates(t *testing.T) {
	c := newCerts(t)
	s := startTLS(t, server.Config{}, c.server(t, tls.NoClientCert))
	good := dialTLS(t, s.SecureAddr(), c.client(t, ""))
	good.connect(60_000, 0, nil)
	begin := func() (*raw, *rekeyer, net.Conn) {
		var log secrets
		with := c.client(t, "")
		with.MinVersion, with.KeyLogWriter = tls.VersionTLS13, &log
		r := dialTLS(t, s.SecureAddr(), with)
		r.connect(60_000, 0, nil)
		tc := r.nc.(*tls.Conn)
		if suite := tc.ConnectionState().CipherSuite; suite != tls.TLS_AES_128_GCM_SHA256 {
			t.Skipf("the cipher suite is %s, this client knows TLS_AES_128_GCM_SHA256 only", tls.CipherSuiteName(suite))
		}
		k := newRekeyer(t, log.client)
		k.seq = 1 // the connect request
		return r, k, tc.NetConn()
	}
	ping := append([]byte{0, 0, 0, 8}, (&proto.RequestHeader{Xid: proto.XidPing, Op: proto.OpPing}).Append(nil)...)

	// A few are answered, without a request of the client.
	r, k, nc := begin()
	for range 3 {
		if _, err := nc.Write(append(k.update(t), k.update(t)...)); err != nil {
			t.Fatal(err)
		}
		if _, err := nc.Write(k.record(ping, 23)); err != nil {
			t.Fatal(err)
		}
		if h, _ := r.reply(); h.Xid != proto.XidPing {
			t.Fatal(h)
		}
	}
	// More in a row than anybody needs end the connection.
	var flood []byte
	for range 20 {
		flood = append(flood, k.update(t)...)
	}
	if _, err := nc.Write(flood); err != nil {
		t.Fatal(err)
	}
	if b := r.tryRecv(); b != nil {
		t.Errorf("%x after 20 updates in a row", b)
	}
	// As many as possible, with requests between them, cost no memory.
	_, k, nc = begin()
	done := make(chan struct{})
	go func() { // ends when all is written, or with the connection
		defer close(done)
		for range 300 {
			var b []byte
			for range 20 {
				for range 10 {
					b = append(b, k.update(t)...)
				}
				b = append(b, k.record(ping, 23)...)
			}
			if _, err := nc.Write(b); err != nil {
				return
			}
		}
	}()
	for xid := range int32(300) {
		good.call(xid+1, proto.OpExists, &proto.PathWatchRequest{Path: "/"})
		if unread, queued, _ := server.ClientMemory(s); unread+queued > 1<<20 { // its error is for a server at rest
			t.Fatalf("clients hold %d and %d bytes", unread, queued)
		}
	}
	_ = nc.Close()
	<-done
}
