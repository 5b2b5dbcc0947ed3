package recipetest

import (
	"context"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/recipes"
)

// ClientPair is two Clients of the servers that Servers returns, of which A can be cut off, and a
// znode of their own. The Clients are closed with the test. The test must delete the znode.
type ClientPair struct {
	A, B *recipes.Client
	Cut  *Cutter
	Root string
}

// ConnectPair connects a ClientPair. The name of Root begins with prefix. ctx ends after a minute
// without other load.
func ConnectPair(t testing.TB, prefix string) (ctx context.Context, p ClientPair) {
	t.Helper()
	servers := Servers(t)
	ctx = watchdog.Context(t, time.Minute)
	p.Cut = &Cutter{}
	connect := func(opts ...recipes.Option) *recipes.Client {
		c, err := recipes.Connect(ctx, servers, append(opts, recipes.Retry(recipes.Forever(10*time.Millisecond)))...)
		if err != nil {
			t.Fatal(err)
		}
		closeAfter(t, c)
		return c
	}
	p.A, p.B = connect(recipes.Dialer(p.Cut.Dial)), connect()
	root, err := p.A.Create(ctx, "/"+prefix, nil, recipes.CreateOptions{Mode: recipes.PersistentSequential})
	if err != nil {
		t.Fatal(err)
	}
	p.Root = root
	return ctx, p
}
