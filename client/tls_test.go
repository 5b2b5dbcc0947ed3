package client_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/clientauth"
	"github.com/gozkd/gozkd/internal/memnet"
	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/proto"
)

// dialTLS dials the fake behind TLS.
func (f *fake) dialTLS(server *tls.Config) func(context.Context, string) (net.Conn, error) {
	return func(context.Context, string) (net.Conn, error) {
		near, far := memnet.Pipe("client", "server")
		f.all.Go(func() { // ends when either side closes; awaited at the end of the test
			defer func() { _ = far.Close() }()
			f.serve(tls.Server(far, server))
		})
		return near, nil
	}
}

// TestTLS_Works checks a session over TLS with a client certificate, and that a break is survived.
func TestTLS_Works(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := testca.New(t, "ca")
		server, alice := ca.Issue(t, testca.Spec{Hosts: []string{"fake"}}), ca.Issue(t, testca.Spec{CN: "alice"})
		f := &fake{answer: polite(func(h proto.RequestHeader, _ []byte) []byte {
			if h.Op == proto.OpSync {
				return nil
			}
			return reply(h.Xid, 1, proto.OK, make([]byte, proto.StatBytes))
		})}
		c, _ := connectFake(t, f, func(cfg *client.Config) { cfg.Dial = client.DialTLS(alice.Client(""), f.dialTLS(server.Server())) })
		if _, err := c.Sync(t.Context(), "/"); !errors.Is(err, proto.ErrConnectionLoss) {
			t.Fatal(err)
		}
		if _, err := c.Set(t.Context(), "/a", nil, -1); err != nil {
			t.Error(err)
		}
	})
}

// TestTLS_Refused checks that a handshake that fails gives no session, with the reason.
func TestTLS_Refused(t *testing.T) {
	ca, other := testca.New(t, "ca"), testca.New(t, "other")
	server := ca.Issue(t, testca.Spec{Hosts: []string{"fake"}})
	for _, c := range []struct {
		name string
		tls  *tls.Config
		want string
	}{
		{"foreign", other.Issue(t, testca.Spec{}).Client(""), "unknown authority"},
		{"no configuration", nil, "unknown authority"},
		{"other host", ca.Issue(t, testca.Spec{}).Client("elsewhere"), "not elsewhere"},
		{"no certificate", &tls.Config{RootCAs: ca.Pool()}, "certificate required"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fake{handshake: welcome}
			_, err := client.Connect(t.Context(), client.Config{Servers: []string{"fake:1"}, Dial: client.DialTLS(c.tls, f.dialTLS(server.Server()))})
			f.all.Wait()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestTLS_PlainPort checks that the error of a port without TLS says so, whether the server answers
// or closes.
func TestTLS_PlainPort(t *testing.T) {
	ca := testca.New(t, "ca")
	for _, answer := range []string{"", "This is not TLS"} {
		_, err := client.Connect(t.Context(), client.Config{
			Servers: []string{"fake:1"}, Dial: client.DialTLS(ca.Issue(t, testca.Spec{}).Client(""), func(context.Context, string) (net.Conn, error) {
				near, far := memnet.Pipe("client", "server")
				go func() { // ends after the first read; nobody has to wait for it
					_, _ = far.Read(make([]byte, 4<<10))
					_, _ = far.Write([]byte(answer))
					_ = far.Close()
				}()
				return near, nil
			}),
		})
		if !errors.Is(err, clientauth.ErrNotTLS) {
			t.Errorf("%v", err)
		}
	}
}
