// Package crowd opens many sessions that do nothing but watch znodes: what they cost a server, and
// how they come back to a server that was killed, is for its callers to measure.
package crowd

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/testkit/must"
)

// limit is how long all sessions may take to connect, or to come back after a restart.
const limit = 5 * time.Minute

// opening is how many sessions are opened at once.
const opening = 16

// Crowd is sessions of our client, which pings and, after a lost connection, comes back.
type Crowd struct {
	sessions []atomic.Pointer[client.Client]
	turns    chan struct{}
	running  sync.WaitGroup
}

// Open begins to open sessions with the servers, each with watches of znodes that do not exist. A
// session that expires is opened again if renew is set. The connections end with ctx.
func Open(ctx context.Context, servers []string, sessions, watches int, renew bool) *Crowd {
	c := &Crowd{sessions: make([]atomic.Pointer[client.Client], sessions), turns: make(chan struct{}, opening)}
	for i := range c.sessions {
		cfg := client.Config{Servers: servers, Dial: dialFrom(i)}
		// Ends with ctx, or when a session is open that is not renewed; awaited by Wait.
		c.running.Go(func() {
			for ctx.Err() == nil {
				z := c.open(ctx, i, cfg, watches)
				if z == nil || !renew {
					return
				}
				<-z.Done()
			}
		})
	}
	return c
}

// open opens the i-th session, and returns it, or nil when ctx has ended.
func (c *Crowd) open(ctx context.Context, i int, cfg client.Config, watches int) (z *client.Client) {
	c.turns <- struct{}{}
	defer func() { <-c.turns }()
	backoff.Retry(ctx, func() (done bool) {
		var err error
		z, err = client.Connect(ctx, cfg)
		for w := 0; err == nil && w < watches; w++ {
			_, _, err = z.Exists(ctx, fmt.Sprintf("/watched-%d-%d", i, w), true)
		}
		switch {
		case err == nil:
			context.AfterFunc(ctx, z.Detach)
			c.sessions[i].Store(z)
		case z != nil:
			z.Detach()
		}
		return err == nil
	})
	return c.sessions[i].Load()
}

// dialFrom returns the dialer of the i-th session. With more than some 14,000 connections from one
// address to a port, Linux takes long to find a free port for the next.
func dialFrom(i int) func(ctx context.Context, address string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, byte(i/1000/250)+1, byte(i/1000%250))}}
	return func(ctx context.Context, address string) (net.Conn, error) { return d.DialContext(ctx, "tcp", address) }
}

// Count returns how many sessions have a connection, and how many have ended.
func (c *Crowd) Count() (connected, ended int) {
	for i := range c.sessions {
		switch z := c.sessions[i].Load(); {
		case z == nil:
		case z.State().Ended():
			ended++
		case z.State() == client.Connected:
			connected++
		}
	}
	return connected, ended
}

// Await waits until all sessions are connected or have ended. It returns how long that took, and
// how many have ended.
func (c *Crowd) Await(ctx context.Context) (took time.Duration, ended int) {
	begun := time.Now()
	for connected := 0; connected+ended < len(c.sessions); connected, ended = c.Count() {
		if time.Since(begun) > limit {
			must.Failf("%d of %d sessions are not there after %v", len(c.sessions)-connected-ended, len(c.sessions), limit)
		}
		must.Sleep(ctx, 100*time.Millisecond)
	}
	return time.Since(begun), ended
}

// Wait returns when nothing opens sessions any more, after the end of Open's ctx.
func (c *Crowd) Wait() { c.running.Wait() }
