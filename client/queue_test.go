package client_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/server"
)

func TestAwaitEvents(t *testing.T) {
	s := startServer(t, server.Config{})
	release := make(chan struct{})
	delivered := make(chan string, 10) // more than the number of events
	c, err := client.Connect(t.Context(), client.Config{Servers: []string{"in process"}, Dial: (&wire{dial: s.Dial}).Dial, OnEvent: func(e client.Event) {
		<-release
		delivered <- e.Path
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, _, err := c.Get(t.Context(), "/", true); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Set(t.Context(), "/", nil, client.AnyVersion); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := c.AwaitEvents(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while OnEvent has not returned: %v", err)
	}
	close(release)
	if err := c.AwaitEvents(t.Context()); err != nil {
		t.Error(err)
	}
	if len(delivered) != 2 { // the new session and the change
		t.Errorf("%d events told, want 2", len(delivered))
	}
}
