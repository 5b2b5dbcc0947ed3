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

// ServersVariable names the servers, as host:port,host:port, that tests use instead of a server in
// the process. Any ZooKeeper servers will do.
const ServersVariable = "GOZKD_RECIPES_SERVERS"

// Servers returns the servers that ServersVariable names, or a server that is started for the test.
// Tests may only use the client port and znodes with unique names, and must leave nothing behind.
// Not in bubbles.
func Servers(t testing.TB) []string {
	t.Helper()
	if list := os.Getenv(ServersVariable); list != "" {
		return strings.Split(list, ",")
	}
	return []string{zktest.Start(t).ConnectString()}
}

// Cutter makes connections and cuts them on the client's side, so any server will do. Safe for
// concurrent use.
type Cutter struct {
	mu sync.Mutex
	// The connection breaks when this many more frames were written, before an answer is read; 0
	// means never.
	after int
}

// Dial is a function for recipes.Dialer.
func (c *Cutter) Dial(network, address string, timeout time.Duration) (net.Conn, error) {
	conn, err := net.DialTimeout(network, address, timeout)
	if err != nil {
		return nil, err
	}
	return &cutConn{Conn: conn, cutter: c}, nil
}

// Arm breaks the connection when that many more requests were written, so that the answer to the
// last request is lost; 0 means never.
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
			// The server gets the request; only this side stops listening.
			_ = c.Conn.SetReadDeadline(time.Now())
			_ = c.Conn.Close()
		}
	}
	return n, err
}

// AssertEmpty reports an error if the znode at path has children. The znode may be missing: the
// server deletes an empty container at some time.
func AssertEmpty(ctx context.Context, t testing.TB, c *recipes.Client, path string) {
	t.Helper()
	names, _, err := c.Children(ctx, path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) || len(names) != 0 {
		t.Errorf("left below %s: %q, %v", path, names, err)
	}
}
