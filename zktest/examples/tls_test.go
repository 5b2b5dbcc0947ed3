package examples

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/zktest"
)

// The subject of a client's certificate is its identity: what only the superuser may read, no other
// client can. Connections over TLS survive the death of the leader as others do.
func TestTLS_Ensemble(t *testing.T) {
	t.Parallel()
	ca := zktest.TLS(t)
	super := zktest.WithConfig(func(_ int, c *server.Config) { c.Auth.X509.SuperUser = "CN=admin" })
	e := zktest.StartEnsemble(t, 3, ca.Servers(), super)
	admin, alice := e.ConnectTLS(t, ca.Client(t, "admin")), e.ConnectTLS(t, ca.Client(t, "alice"))
	if _, err := alice.Create("/secret", []byte("x"), 0, zk.DigestACL(zk.PermAll, "somebody", "else")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := alice.Get("/secret"); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("alice: %v", err)
	}
	e.Leader().Restart()
	for {
		if _, _, err := admin.Get("/secret"); err == nil {
			break
		} else if errors.Is(err, zk.ErrNoAuth) {
			t.Fatal(err)
		}
	}
	e.Connect(t) // the port takes plain connections, too
}

// A client without a certificate gets no connection. In a bubble the certificates are valid as
// well.
func TestTLS_NoCertificate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ca := zktest.TLS(t)
		s := zktest.Start(t, ca.Servers())
		s.ConnectTLS(t, ca.Client(t, "alice"))
		nobody := ca.Client(t, "nobody")
		nobody.Certificates = nil
		nc, err := s.TLSDialer(nobody)("tcp", s.ConnectString(), time.Second)
		if err == nil { // a server of TLS 1.3 refuses the certificate after the client's handshake
			_, err = nc.Read(make([]byte, 1))
		}
		if alert := (*net.OpError)(nil); !errors.As(err, &alert) || alert.Op != "remote error" {
			t.Errorf("%v", err)
		}
	})
}
