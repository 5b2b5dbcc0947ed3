package zktest_test

import (
	"testing"
	"testing/synctest"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/zktest"
)

// TestClients checks that the clients of Client, Recipes and Connect see the same znodes.
func TestClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := zktest.StartEnsemble(t, 3)
		if n := len(e.Servers()); n != 3 {
			t.Errorf("%d servers", n)
		}
		if tree := e.Tree("/app"); tree == nil || len(tree) != 0 {
			t.Errorf("there is no /app, but Tree returns %v", tree)
		}
		if _, _, err := e.Client(t).Create(t.Context(), "/app", []byte("1"), client.CreateOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := e.Recipes(t).Create(t.Context(), "/app/z", nil, recipes.CreateOptions{Ephemeral: true}); err != nil {
			t.Error(err)
		}
		e.AssertData("/app", "1")
		e.AssertExists("/app/z")
	})
}
