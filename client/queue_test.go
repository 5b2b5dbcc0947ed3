package client_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
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

// counted is a context that counts how often it is asked for its end.
type counted struct {
	context.Context
	asked *atomic.Int64
}

func (c counted) Err() error {
	c.asked.Add(1)
	return c.Context.Err()
}

// TestAwaitEvents_Many: an event does not wake those who wait for others.
func TestAwaitEvents_Many(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiters, events = 100, 100
		release := make(chan struct{})
		config := client.Config{Servers: []string{"in process"}, OnEvent: func(client.Event) {
			<-release
			time.Sleep(time.Millisecond) // until all that can go on has done so
		}}
		config.Dial = (&wire{dial: startServer(t, server.Config{}).Dial}).Dial
		c, err := client.Connect(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddWatch(t.Context(), "/", proto.AddWatchPersistent); err != nil {
			t.Fatal(err)
		}
		for range events {
			if _, err := c.Set(t.Context(), "/", nil, client.AnyVersion); err != nil {
				t.Fatal(err)
			}
		}
		var asked atomic.Int64
		var wg sync.WaitGroup
		for range waiters {
			wg.Go(func() {
				if err := c.AwaitEvents(counted{t.Context(), &asked}); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(release)
		wg.Wait()
		if n := asked.Load(); n > 10*waiters {
			t.Errorf("%d waiters looked %d times during %d events", waiters, n, events)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}
