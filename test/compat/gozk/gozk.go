// Package gozk exercises everything that github.com/go-zookeeper/zk can do on a server.
package gozk

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/cases"
)

const module = "github.com/go-zookeeper/zk"

// sessionTimeout is the default of the clients here.
const sessionTimeout = 10 * time.Second

// Run runs all cases against the server at addr, whose superuser has the given password. With a
// configuration of TLS, which may be nil, the clients use it, and the four-letter words, which the
// library sends without, are left out.
func Run(ctx context.Context, addr, superPassword string, secure *tls.Config) (cases.Report, error) {
	s := &script{addr: addr, superPassword: superPassword, secure: secure}
	var list []cases.Case
	groups := [][]work{s.nodes(), s.multis(), s.access(), s.watches(), s.sessions(), s.recipes()}
	if secure == nil {
		groups = append(groups, s.words())
	}
	for _, group := range groups {
		for _, w := range group {
			list = append(list, s.wrap(w))
		}
	}
	return cases.Report{Version: Version(), Results: cases.Run(ctx, list)}, nil
}

// Version returns the go-zookeeper version in this program.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, d := range info.Deps {
		if d.Path == module {
			return strings.TrimPrefix(d.Version, "v")
		}
	}
	return "unknown"
}

type script struct {
	addr, superPassword string
	secure              *tls.Config // nil: without TLS
}

// work is a case that needs a connected client and a znode of its own.
type work struct {
	name string
	run  func(ctx context.Context, c *zk.Conn, root string)
}

func (s *script) wrap(w work) cases.Case {
	return cases.Case{Name: w.name, Run: func(ctx context.Context) {
		c := s.connect(ctx)
		defer c.Close()
		root := "/gozk-" + w.name
		must.Get(c.Create(root, nil, 0, zk.WorldACL(zk.PermAll)))
		w.run(ctx, c, root)
	}}
}

// connect is connectTo with the default timeout.
func (s *script) connect(ctx context.Context) *zk.Conn {
	return s.connectTo(ctx, s.addr, sessionTimeout, new(recorder))
}

// connectTo returns a client with a session; events gets all its events. The client closes when the
// context ends, or earlier by the caller.
func (s *script) connectTo(ctx context.Context, addr string, timeout time.Duration, events *recorder) *zk.Conn {
	dial := net.DialTimeout
	if s.secure != nil {
		dial = func(network, address string, timeout time.Duration) (net.Conn, error) {
			return tls.DialWithDialer(&net.Dialer{Timeout: timeout}, network, address, s.secure)
		}
	}
	c, _ := must.Get2(zk.Connect([]string{addr}, timeout, zk.WithLogger(silent{}), zk.WithEventCallback(events.add), zk.WithDialer(dial)))
	// The client's calls take no context: a hanging call returns with an error when its connection
	// closes.
	context.AfterFunc(ctx, c.Close)
	cases.Eventually(ctx, "a session", func() bool { return c.State() == zk.StateHasSession })
	return c
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// recorder collects events. It is safe for concurrent use.
type recorder struct {
	mu     sync.Mutex
	events []zk.Event
}

func (r *recorder) add(e zk.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// count returns how often the session was in the state.
func (r *recorder) count(state zk.State) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, e := range r.events {
		if e.Type == zk.EventSession && e.State == state {
			n++
		}
	}
	return n
}

// want ends the case unless err is target.
func want(what string, err, target error) {
	if !errors.Is(err, target) {
		must.Failf("%s: got error %q, want %q", what, fmt.Sprint(err), fmt.Sprint(target))
	}
}
