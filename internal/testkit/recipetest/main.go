package recipetest

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/server"
)

// Main must be called by TestMain of a package of recipes. Main runs the tests, and fails if a
// goroutine is left. Each property is checked in a few drawn worlds, and in 100 in make exhaustive.
func Main(m *testing.M) {
	exhaustive.DefaultChecks(3, 100)
	goleak.VerifyTestMain(watchdog.Watch(m))
}

// StartServer starts a server in this process for an Example.
func StartServer() (address string, stop func()) {
	s, err := server.New(server.Config{})
	if err != nil {
		panic(err) // an Example cannot fail otherwise
	}
	if err := s.Start(context.Background()); err != nil {
		panic(err) // an Example cannot fail otherwise
	}
	return s.ConnectString(), func() { _ = s.Close() } // the server's data are in memory only
}

// ConnectExample starts a server for an Example and connects to it.
func ConnectExample() (c *recipes.Client, stop func()) {
	address, end := StartServer()
	c, err := recipes.Connect(context.Background(), []string{address})
	if err != nil {
		panic(err) // an Example cannot fail otherwise
	}
	return c, func() {
		_ = c.Close() // the server is about to be closed too
		end()
	}
}
