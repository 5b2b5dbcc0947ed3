package server_test

import (
	"crypto/tls"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/testkit/logbuf"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/server/internal/link"
)

// A client that gave up, or whose time ran out, while the process stood still has not failed: it is
// not counted and causes no warning. Nobody else is excused: neither a client that does wrong, nor
// one that gives up when the process has not stood still.
func TestStandstill_Handshakes(t *testing.T) {
	const record, half = "\x16\x03\x01\x00\x10", "garbagegarb"
	for name, c := range map[string]struct {
		port, bytes string
		gone, guilt bool // the client closes the connection; it is counted after a standstill, too
	}{
		"a queued hello":        {port: "zk:2281", bytes: record + half, gone: true},
		"a hello in part":       {port: "zk:2281", bytes: record + half},
		"silence":               {port: "zk:2281"},
		"silence, plain":        {port: "zk:2181"},
		"garbage":               {port: "zk:2281", bytes: record + half + half, guilt: true},
		"no TLS":                {port: "zk:2281", bytes: "\x00\x00\x00\x2c\x00", guilt: true},
		"a connect request cut": {port: "zk:2181", bytes: "\x00\x00\x00\x2c\x00"},
	} {
		for _, still := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", still"}[still], func(t *testing.T) {
				var lines logbuf.Buffer
				cfg := ticks
				cfg.TLS, cfg.Logger = newCerts(t).server(t, tls.NoClientCert), hclog.New(&hclog.LoggerOptions{Output: &lines, Level: hclog.Warn})
				tlsBubble(t, cfg, func(t *testing.T, s *server.Server, dial func(string, string, *tls.Config) *raw) {
					if still {
						server.StandStill(s)
					}
					r := dial("client", c.port, nil)
					if _, err := io.WriteString(r.nc, c.bytes); err != nil {
						t.Fatal(err)
					}
					if c.gone {
						_ = r.nc.Close()
					}
					time.Sleep(time.Minute)
					synctest.Wait()
					n := counted(s)
					failed := n["unsuccessful_handshake"] + n["sessionless_connections_expired"]
					if want := !still || c.guilt; (failed > 0) != want || n["auth_failed_count"] != n["unsuccessful_handshake"] {
						t.Errorf("%d failures, %d of authentication; want some: %v; logged: %s", failed, n["auth_failed_count"], want, &lines)
					}
					if still && !c.guilt && lines.String() != "" {
						t.Errorf("logged %s", &lines)
					}
					if n := s.Facts().Stats().Connections; n != 0 {
						t.Errorf("%d connections are left", n)
					}
				})
			})
		}
	}
}

// A client is excused for as long as a handshake may take by now.
func TestStandstill_Reload(t *testing.T) {
	cfg := ticks
	cfg.TLS = newCerts(t).server(t, tls.NoClientCert)
	tlsBubble(t, cfg, func(t *testing.T, s *server.Server, dial func(string, string, *tls.Config) *raw) {
		longer := server.ReloadedWith(s, func(c *server.Config) { c.HandshakeTimeout = 3 * time.Minute })
		if restart, err := s.Reload(longer); err != nil || restart != nil {
			t.Fatal(restart, err)
		}
		server.StandStill(s)
		dial("client", "zk:2181", nil)
		time.Sleep(longer.HandshakeTimeout)
		synctest.Wait()
		if n := counted(s)["sessionless_connections_expired"]; n != 0 || s.Facts().Stats().Connections != 0 {
			t.Errorf("%d clients without a session are counted, %d are connected", n, s.Facts().Stats().Connections)
		}
	})
}

// A client that claimed its session while the process stood still, and has found another server
// since, keeps its session there. One that still waits gets it.
func TestStandstill_Claims(t *testing.T) {
	cfg := ticks
	cfg.TLS = newCerts(t).server(t, tls.NoClientCert)
	tlsBubble(t, cfg, func(t *testing.T, s *server.Server, from func(string, string, *tls.Config) *raw) {
		dial := func() *raw { return from("client", "zk:2181", nil) }
		owner := dial()
		owner.connect(60_000, 0, nil)
		server.StandStill(s)
		gone := dial()
		gone.send((&proto.ConnectRequest{TimeoutMs: 60_000, SessionID: owner.id, Passwd: owner.pass}).Append(nil))
		_ = gone.nc.Close()
		synctest.Wait()
		owner.ping()
		waits := dial()
		if waits.connect(60_000, owner.id, owner.pass).SessionID != owner.id {
			t.Error("a client that waits is refused")
		}
		waits.ping()
	})
}

// What a client sends right behind its claim does not hide that the client has gone.
func TestStandstill_GoneWithMore(t *testing.T) {
	c := newCerts(t)
	cfg := ticks
	cfg.TLS = c.server(t, tls.NoClientCert)
	tlsBubble(t, cfg, func(t *testing.T, s *server.Server, from func(string, string, *tls.Config) *raw) {
		for _, more := range behindClaims[:len(behindClaims)-1] { // more than InputBytes is not looked through
			for _, dial := range []func() *raw{
				func() *raw { return from("client", "zk:2181", nil) },
				func() *raw { return from("client", "zk:2281", c.client(t, "")) },
			} {
				owner := dial()
				owner.connect(60_000, 0, nil)
				server.StandStill(s)
				gone := dial()
				gone.burst(owner.claim(), readOf(more))
				if err := gone.nc.Close(); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				owner.ping()
			}
		}
	})
}

// A client that stays is served, however the bytes behind its claim fill the buffer.
func TestStandstill_StaysWithMore(t *testing.T) {
	c := newCerts(t)
	s := startTLS(t, server.Config{}, c.server(t, tls.NoClientCert))
	for _, more := range behindClaims {
		for _, dial := range []func() *raw{
			func() *raw { return dialTLS(t, s.Addr(), nil) },
			func() *raw { return dialTLS(t, s.SecureAddr(), c.client(t, "")) },
		} {
			stays := dial()
			stays.connect(60_000, 0, nil)
			claim := stays.claim()
			server.StandStill(s)
			stays = dial()
			stays.burst(claim, readOf(more))
			if stays.recv() == nil { // the connect response
				t.Fatalf("with %d bytes behind it, a claim is refused", more)
			}
			if h, _ := stays.reply(); h.Xid != 1 || h.Err != proto.ErrNoNode {
				t.Errorf("a request of %d bytes is answered by %+v", more, h)
			}
		}
	}
}

// behindClaims are around the sizes of the buffers of a connection.
var behindClaims = []int{100, link.SmallBytes - 100, link.SmallBytes, 3 * link.SmallBytes, link.InputBytes - 1000, 2 * link.InputBytes}

// claim returns a connect request for the session of r.
func (r *raw) claim() []byte {
	return (&proto.ConnectRequest{TimeoutMs: 60_000, SessionID: r.id, Passwd: r.pass}).Append(nil)
}

// readOf returns a request of about that many bytes for a znode that does not exist.
func readOf(bytes int) []byte {
	return encodeRequest(1, proto.OpExists, &proto.PathWatchRequest{Path: "/" + strings.Repeat("x", bytes)})
}

// The time that the process stood still does not count for an exchange of SASL: a client that is
// told that it failed does not try again.
func TestStandstill_SASL(t *testing.T) {
	for _, still := range []bool{false, true} {
		cfg := server.Config{Auth: server.Authentication{SASL: saslUsers("bob")}, HandshakeTimeout: 10 * time.Second}
		serverBubble(t, cfg, func(t *testing.T, s *server.Server, dial func() *raw) {
			r := dial()
			r.connect(60_000, 0, nil)
			if still {
				server.StandStill(s)
			}
			want := map[bool]proto.ErrCode{false: proto.ErrAuthFailed, true: proto.OK}[still]
			if got := r.slowLogin("bob", "bob-secret", 11*time.Second); got != want {
				t.Errorf("standstill %v: %v, want %v", still, got, want)
			}
		})
	}
}
