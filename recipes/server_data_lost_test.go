package recipes_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/zktest"
)

// TestLost_ServersForgot checks a server that was restarted without its data. It refuses clients
// that have seen a later zxid, until the session ends.
func TestLost_ServersForgot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, anew := zktest.Start(t), zktest.Start(t)
		at := one
		c, err := recipes.Connect(t.Context(), []string{"service:2181"}, recipes.Retry(recipes.Forever(time.Second)), recipes.Logger(recipetest.NewLogger(t)),
			recipes.Dialer(func(network, _ string, timeout time.Duration) (net.Conn, error) {
				return at.Dialer()(network, at.ConnectString(), timeout)
			}))
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}()
		for range 10 {
			one.Load(map[string]string{"/a": ""})
		}
		if _, _, err := c.Get(t.Context(), "/a"); err != nil {
			t.Fatal(err)
		}
		at = anew
		one.Stop()
		time.Sleep(recipetest.Timeout + 5*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Create(ctx, "/b", nil, recipes.CreateOptions{Ephemeral: true}); err != nil {
			t.Fatal(err)
		}
		anew.AssertOwner("/b", c.Session().ID())
	})
}
