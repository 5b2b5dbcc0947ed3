package client_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/sasl"
	"github.com/gozkd/gozkd/server"
)

// TestSASL_OnServer checks the exchange with a server that demands it: on the first connection and
// on the next one, with a wrong password, and without any.
func TestSASL_OnServer(t *testing.T) {
	users := make(sasl.DigestUsers)
	users.Set("bob", "secret")
	cfg := server.Config{}
	cfg.Auth.SASL, cfg.Auth.Required = sasl.NewDigest(users), []string{"sasl"}
	s := startServer(t, cfg)
	as := func(password string) func(*client.Config) {
		return func(c *client.Config) { c.SASL = sasl.NewDigestClient("bob", password) }
	}
	c, e, w := connect(t, s, as("secret"))
	for range 2 {
		ids, err := c.WhoAmI(t.Context())
		if err != nil || !slices.Contains(ids, client.Identity{Scheme: "sasl", User: "bob"}) {
			t.Errorf("%v, %v", ids, err)
		}
		w.Break(false)
		e.awaitState(t, client.Connecting) // from now on requests wait for the next connection
	}
	wrong := client.Config{Servers: []string{"in-process:2181"}, Dial: w.Dial}
	as("wrong")(&wrong)
	if _, err := client.Connect(t.Context(), wrong); !errors.Is(err, client.ErrSASL) || !errors.Is(err, proto.ErrAuthFailed) {
		t.Errorf("a wrong password: %v", err)
	}
	nobody, e, _ := connect(t, s)
	if _, err := nobody.WhoAmI(t.Context()); !errors.Is(err, proto.ErrSessionClosedRequireSASLAuth) {
		t.Errorf("without SASL: %v", err)
	}
	e.awaitState(t, client.AuthFailed)
}
