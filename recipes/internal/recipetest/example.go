package recipetest

import (
	"context"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/server"
)

// StartServer starts a server in this process, for an Example: what that does works the same on any ZooKeeper.
func StartServer() (address string, stop func()) {
	s, err := server.New(server.Config{})
	if err != nil {
		panic(err) // an Example has no other way to fail
	}
	if err := s.Start(context.Background()); err != nil {
		panic(err) // an Example has no other way to fail
	}
	return s.ConnectString(), func() { _ = s.Close() } // what is in memory goes with it
}

// ConnectExample starts a server for an Example, and connects to it.
func ConnectExample() (c *recipes.Client, stop func()) {
	address, end := StartServer()
	c, err := recipes.Connect(context.Background(), []string{address})
	if err != nil {
		panic(err) // an Example has no other way to fail
	}
	return c, func() {
		_ = c.Close() // with the server everything goes
		end()
	}
}
