// Package gozk exercises everything that github.com/go-zookeeper/zk can do on a server.
package gozk

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/cases"
)

// Module is the path of the library.
const Module = "github.com/go-zookeeper/zk"

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
		if d.Path == Module {
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

// connect returns a client with a session, as connectBy does.
func (s *script) connect(ctx context.Context) *zk.Conn {
	return s.connectBy(ctx, sessionTimeout, new(line))
}

// connectBy returns a client with a session, whose connections and events go by the line. The
// client closes when the context ends, or earlier by the caller.
func (s *script) connectBy(ctx context.Context, timeout time.Duration, l *line) *zk.Conn {
	l.secure = s.secure
	c, _ := must.Get2(zk.Connect([]string{s.addr}, timeout,
		zk.WithLogger(log.New(io.Discard, "", 0)), zk.WithEventCallback(l.add), zk.WithDialer(l.dial)))
	// The client's calls take no context: a hanging call returns with an error when its connection
	// closes.
	context.AfterFunc(ctx, c.Close)
	cases.Eventually(ctx, "a session", func() bool { return c.State() == zk.StateHasSession })
	return c
}

// want ends the case unless err is target.
func want(what string, err, target error) {
	if !errors.Is(err, target) {
		must.Failf("%s: got error %q, want %q", what, fmt.Sprint(err), fmt.Sprint(target))
	}
}
