package recipetest

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/zktest"
)

// ServersVariable names servers, host:port,host:port, that tests run against in place of one in the process: any ZooKeeper.
const ServersVariable = "GOZKD_RECIPES_SERVERS"

// Servers returns those that ServersVariable names, or one that is started for the test. Who uses them needs nothing but a client port, works below
// znodes with names of its own, and leaves nothing behind. Outside of bubbles only.
func Servers(t testing.TB) []string {
	t.Helper()
	if list := os.Getenv(ServersVariable); list != "" {
		return strings.Split(list, ",")
	}
	return []string{zktest.Start(t).ConnectString()}
}

// Cutter makes connections that it can cut on the client's side, so that it works with any server. Safe for concurrent use.
type Cutter struct {
	mu sync.Mutex
	// after this many more frames were written, the connection breaks before an answer is read; 0 is never
	after int
}

// Dial is for recipes.Dialer.
func (c *Cutter) Dial(network, address string, timeout time.Duration) (net.Conn, error) {
	conn, err := net.DialTimeout(network, address, timeout)
	if err != nil {
		return nil, err
	}
	return &cutConn{Conn: conn, cutter: c}, nil
}

// Arm lets the connection break when so many more requests were written, so that the last one's answer is lost; 0 is never.
func (c *Cutter) Arm(after int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.after = after
}

type cutConn struct {
	net.Conn
	cutter *Cutter
}

func (c *cutConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.cutter.mu.Lock()
	defer c.cutter.mu.Unlock()
	if c.cutter.after > 0 {
		if c.cutter.after--; c.cutter.after == 0 {
			// The server has got the request, or gets it: only this end stops listening.
			_ = c.Conn.SetReadDeadline(time.Now())
			_ = c.Conn.Close()
		}
	}
	return n, err
}

// AssertEmpty reports an error if the znode at path has children. It may be gone: the server deletes an empty container at a time of its own.
func AssertEmpty(ctx context.Context, t testing.TB, c *recipes.Client, path string) {
	t.Helper()
	names, _, err := c.Children(ctx, path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) || len(names) != 0 {
		t.Errorf("left below %s: %q, %v", path, names, err)
	}
}
