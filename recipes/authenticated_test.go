package recipes_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/memnet"
	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/sasl"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/zktest"
)

// password is a mechanism of two tokens, the second of which is the password.
type password string

func (p password) New(string) (sasl.ClientExchange, error) { return &passwordExchange{p: p}, nil }

type passwordExchange struct {
	p    password
	sent int
}

func (e *passwordExchange) Step([]byte) ([]byte, bool, error) {
	e.sent++
	switch e.sent {
	case 1:
		return []byte{}, false, nil
	case 2:
		return []byte(e.p), false, nil
	}
	return nil, true, nil
}

// guard stands before a server and demands the mechanism password, with the word "right", before
// the first request of each connection.
type guard struct {
	mu       sync.Mutex
	admitted int  // connections
	early    bool // a request came before the exchange
}

// guardedConn is a connection of a client to the server behind a guard.
type guardedConn struct {
	net.Conn
	g       *guard
	first   bool
	tokens  int
	replies bytes.Buffer
}

func (g *guard) dialer(dial func(network, address string, timeout time.Duration) (net.Conn, error)) recipes.Option {
	return recipes.Dialer(func(network, address string, timeout time.Duration) (net.Conn, error) {
		conn, err := dial(network, address, timeout)
		return &guardedConn{Conn: conn, g: g, first: true}, err
	})
}

func (c *guardedConn) Write(b []byte) (int, error) {
	switch {
	case c.first:
		c.first = false
	case binary.BigEndian.Uint32(b[8:]) == 102:
		c.tokens++
		reply := append(bytes.Clone(b[4:8]), make([]byte, 8+4+4)...) // xid, zxid, code, empty token
		if c.tokens == 2 && string(b[16:]) != "right" {
			copy(reply[12:], []byte{0xff, 0xff, 0xff, 0x8d, 0xff, 0xff, 0xff, 0xff}) // -115 and a null token
		} else if c.tokens == 2 {
			c.g.mu.Lock()
			c.g.admitted++
			c.g.mu.Unlock()
		}
		c.replies.Write(binary.BigEndian.AppendUint32(nil, uint32(len(reply))))
		c.replies.Write(reply)
		return len(b), nil
	case c.tokens < 2:
		c.g.mu.Lock()
		c.g.early = true
		c.g.mu.Unlock()
	}
	return c.Conn.Write(b)
}

func (c *guardedConn) Read(b []byte) (int, error) {
	if c.replies.Len() > 0 {
		return c.replies.Read(b)
	}
	return c.Conn.Read(b)
}

// TestWithSASL_FirstOnEachConnection checks that the exchange precedes every other request, on the
// first connection, on one that resumes the session, on one that has to close a lost session, and
// on that of the next session.
func TestWithSASL_FirstOnEachConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := zktest.Start(t), &guard{}
		c := recipetest.Open(t, recipetest.Connect, s.Service, 10*time.Second, g.dialer(s.Dialer()), recipes.WithSASL(password("right")), recipes.Auth("digest", []byte("a:b")))
		if _, err := c.Create(t.Context(), "/a", nil, recipes.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		session := c.Session()
		s.CloseConnections()
		if err := c.Sync(t.Context(), "/"); err != nil || c.Session() != session {
			t.Fatalf("%v, another session: %v", err, c.Session() != session)
		}
		s.Partition()
		<-session.Context().Done() // the client gives up before the server does
		s.Heal()
		if err := c.Sync(t.Context(), "/"); err != nil {
			t.Fatal(err)
		}
		if c.Session() == session {
			t.Error("the session goes on")
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.early || g.admitted < 3 {
			t.Errorf("%d exchanges; a request came early: %v", g.admitted, g.early)
		}
	})
}

// TestWithSASL_Refused checks that Connect fails at once, with the reason, and leaves nothing
// behind.
func TestWithSASL_Refused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := zktest.Start(t), &guard{}
		begun := time.Now()
		_, err := recipes.Connect(t.Context(), strings.Split(s.ConnectString(), ","), g.dialer(s.Dialer()), recipes.WithSASL(password("wrong")))
		if !errors.Is(err, client.ErrSASL) || !strings.Contains(err.Error(), "refused the credentials") {
			t.Errorf("%v", err)
		}
		if took := time.Since(begun); took > 3*time.Second { // go-zookeeper notices the end after a second
			t.Errorf("it took %v", took)
		}
	})
}

// tlsFront makes a Client's connections end at a TLS server before the real one.
func tlsFront(t *testing.T, cfg *tls.Config, dial func(network, address string, timeout time.Duration) (net.Conn, error)) recipes.Option {
	var all sync.WaitGroup
	t.Cleanup(all.Wait)
	return recipes.Dialer(func(network, address string, timeout time.Duration) (net.Conn, error) {
		behind, err := dial(network, address, timeout)
		if err != nil {
			return nil, err
		}
		near, far := memnet.Pipe("client", "front")
		front := tls.Server(far, cfg)
		both := func() { _, _ = behind.Close(), far.Close() }
		all.Go(func() { defer both(); _, _ = io.Copy(behind, front) }) // end when either side closes; awaited at the end of the test
		all.Go(func() { defer both(); _, _ = io.Copy(front, behind) })
		return near, nil
	})
}

// TestWithTLS checks a Client over TLS, and that Connect names the reason when ctx ends.
func TestWithTLS(t *testing.T) { synctest.Test(t, withTLS) }

func withTLS(t *testing.T) {
	ca := testca.New(t, "ca")
	server, client := ca.Issue(t, testca.Spec{Hosts: []string{"127.0.0.1"}}), ca.Issue(t, testca.Spec{CN: "alice"})
	s := zktest.Start(t)
	front := tlsFront(t, server.Server(), s.Dialer())
	servers := strings.Split(s.ConnectString(), ",")
	c, err := recipes.Connect(t.Context(), servers, front, recipes.WithTLS(client.Client("")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(t.Context(), "/a", nil, recipes.CreateOptions{}); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err = recipes.Connect(ctx, servers, front, recipes.WithTLS(client.Client("elsewhere")))
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "wanted to match elsewhere") {
		t.Errorf("%v", err)
	}
}

// TestWithTLS_Nil checks that a program may pass the TLS configuration that it does not have.
func TestWithTLS_Nil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recipetest.Open(t, recipetest.Connect, zktest.Start(t).Service, 10*time.Second, recipes.WithTLS(nil))
	})
}

// enforcing returns a server that serves only clients with a SASL user.
func enforcing(t *testing.T) *zktest.Server {
	users := make(sasl.DigestUsers)
	users.Set("bob", "secret")
	return zktest.Start(t, zktest.WithConfig(func(_ int, c *server.Config) {
		c.Auth.SASL, c.Auth.Required = sasl.NewDigest(users), []string{"sasl"}
	}))
}

// TestWithSASL_Enforced checks a Client at a server that demands SASL, over a lost connection and a
// lost session.
func TestWithSASL_Enforced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := enforcing(t)
		c := recipetest.Open(t, recipetest.Connect, s.Service, 10*time.Second, recipes.WithSASL(sasl.NewDigestClient("bob", "secret")))
		if _, err := c.Create(t.Context(), "/a", nil, recipes.CreateOptions{Ephemeral: true}); err != nil {
			t.Fatal(err)
		}
		s.CloseConnections()
		if err := c.Sync(t.Context(), "/"); err != nil {
			t.Error(err)
		}
		session := c.Session()
		s.Partition()
		<-session.Context().Done() // the client gives up before the server does
		s.Heal()
		if err := c.Sync(t.Context(), "/"); err != nil {
			t.Error(err)
		}
		s.AssertMissing("/a") // the lost session was closed, which needs the identity, too
	})
}

// TestAuth_Enforced checks that credentials precede the first request of each connection: a server
// that demands the scheme digest closes others.
func TestAuth_Enforced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t, zktest.WithConfig(func(_ int, c *server.Config) { c.Auth.Required = []string{"digest"} }))
		var dials atomic.Int32
		dial := s.Dialer()
		c := recipetest.Open(t, recipetest.Connect, s.Service, 10*time.Second, recipes.Auth("digest", []byte("ann:x")), recipes.Dialer(func(network, address string, timeout time.Duration) (net.Conn, error) {
			dials.Add(1)
			time.Sleep(time.Millisecond) // the probes are under way
			return dial(network, address, timeout)
		}))
		if err := c.Sync(t.Context(), "/"); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if n := dials.Load(); n != 1 {
			t.Errorf("%d connections", n)
		}
	})
}

// TestIdentityDemanded checks that a Client without the identity that a server demands says so, and
// does not connect in a tight loop.
func TestIdentityDemanded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := enforcing(t)
		var dials atomic.Int32
		dial := s.Dialer()
		c := recipetest.Open(t, recipetest.Connect, s.Service, 10*time.Second, recipes.Dialer(func(network, address string, timeout time.Duration) (net.Conn, error) {
			dials.Add(1)
			return dial(network, address, timeout)
		}))
		begun := time.Now()
		for time.Since(begun) < time.Minute {
			if err := c.Sync(t.Context(), "/"); !errors.Is(err, proto.ErrSessionClosedRequireSASLAuth) {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if n := dials.Load(); n > 70 {
			t.Errorf("%d connections in a minute", n)
		}
	})
}
