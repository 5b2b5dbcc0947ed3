package interop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/cases"
)

// sessionTimeout is the timeout of peers that live to the end: long, so that a busy machine loses
// none.
const sessionTimeout = 20 * time.Second

// victimTimeout is the timeout of peers that are killed; their objects are free after it.
const victimTimeout = 4 * time.Second

// Run starts two processes of each command on the server at addr, kills one of the two on the way,
// and runs every scenario that these languages can share. seed is the source of random decisions.
// The report's version names all languages.
func Run(ctx context.Context, addr string, commands []Command, seed uint64) (_ cases.Report, err error) {
	conn, err := connect(ctx, addr)
	if err != nil {
		return cases.Report{}, err
	}
	defer conn.Close()
	c := &cast{conn: conn, rnd: rand.New(rand.NewPCG(seed, seed))}
	err = must.Try(func() { c.start(ctx, addr, commands) })
	defer func() { err = errors.Join(err, c.stop()) }()
	if err != nil {
		return cases.Report{Log: c.logs()}, err
	}
	report := cases.Report{Version: c.versions()}
	// In parallel: a death takes a session timeout of waiting.
	var deaths []cases.Result
	must.All(func() { deaths = cases.Run(ctx, []cases.Case{{Name: "death", Run: c.death}}) },
		func() { report.Results = cases.Run(ctx, c.scenarios()) })
	report.Results = append(report.Results, deaths...)
	report.Log = fmt.Sprintf("seed %d\n%s", seed, c.logs())
	return report, err
}

// cast holds the peers of the scenarios. Only the goroutine that runs them may use rnd; the rest is
// safe for concurrent use.
type cast struct {
	conn    *zk.Conn
	peers   []*peer // one of each language
	victims []*peer // the same, with short sessions
	rnd     *rand.Rand
}

func connect(ctx context.Context, addr string) (*zk.Conn, error) {
	conn, events, err := zk.Connect(strings.Split(addr, ","), sessionTimeout, zk.WithLogger(silent{}))
	if err != nil {
		return nil, err
	}
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return conn, nil
			}
		case <-ctx.Done():
			conn.Close()
			return nil, ctx.Err()
		}
	}
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// start starts all processes side by side.
func (c *cast) start(ctx context.Context, addr string, commands []Command) {
	c.peers, c.victims = make([]*peer, len(commands)), make([]*peer, len(commands))
	var starts []func()
	for i, command := range commands {
		starts = append(starts,
			func() { c.peers[i] = must.Get(startPeer(ctx, command, addr, sessionTimeout)) },
			func() { c.victims[i] = must.Get(startPeer(ctx, command, addr, victimTimeout)) })
	}
	must.All(starts...)
}

func (c *cast) all() []*peer {
	return slices.DeleteFunc(slices.Concat(c.peers, c.victims), func(p *peer) bool { return p == nil })
}

func (c *cast) stop() error {
	var stops []func()
	for _, p := range c.all() {
		stops = append(stops, func() { must.Do(p.stop()) })
	}
	return must.Try(func() { must.All(stops...) })
}

func (c *cast) versions() string {
	var v []string
	for _, p := range c.peers {
		v = append(v, p.lang+" "+p.version)
	}
	return strings.Join(v, ", ")
}

func (c *cast) logs() string {
	var w strings.Builder
	for _, p := range c.all() {
		if log := p.log.String(); log != "" {
			fmt.Fprintf(&w, "%s:\n%s\n", p.lang, log)
		}
	}
	return w.String()
}

// pair is two languages in an order.
type pair struct{ a, b *peer }

// eachPair calls f for all ordered pairs in parallel, each with a path of its own below root.
func eachPair(root string, peers []*peer, f func(p pair, path string)) {
	var fs []func()
	for _, a := range peers {
		for _, b := range peers {
			if name := a.lang + "-" + b.lang; a != b {
				fs = append(fs, func() { must.Doing(name, func() { f(pair{a, b}, root+"-"+name) }) })
			}
		}
	}
	must.All(fs...)
}

// those returns the peers of these languages.
func those(peers []*peer, langs ...string) []*peer {
	return slices.DeleteFunc(slices.Clone(peers), func(p *peer) bool { return !slices.Contains(langs, p.lang) })
}

// children returns the names below path, or none if there is no such znode.
func (c *cast) children(path string) []string {
	names, _, err := c.conn.Children(path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	must.Do(err)
	return names
}

// standing waits until path has n children.
func (c *cast) standing(ctx context.Context, path string, n int) {
	cases.EventuallyEqual(ctx, "number of znodes below "+path, func() int { return len(c.children(path)) }, n)
}
