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
	err = c.start(ctx, addr, commands)
	defer func() { err = errors.Join(err, c.stop()) }()
	if err != nil {
		return cases.Report{Log: c.logs()}, err
	}
	report := cases.Report{Version: c.versions()}
	// In parallel: a death takes a session timeout of waiting.
	var deaths []cases.Result
	err = together(
		func() error { deaths = cases.Run(ctx, []cases.Case{{Name: "death", Run: c.death}}); return nil },
		func() error { report.Results = cases.Run(ctx, c.scenarios()); return nil })
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
func (c *cast) start(ctx context.Context, addr string, commands []Command) error {
	c.peers, c.victims = make([]*peer, len(commands)), make([]*peer, len(commands))
	var starts []func() error
	for i, command := range commands {
		starts = append(starts,
			func() (err error) { c.peers[i], err = startPeer(ctx, command, addr, sessionTimeout); return err },
			func() (err error) { c.victims[i], err = startPeer(ctx, command, addr, victimTimeout); return err })
	}
	return together(starts...)
}

func (c *cast) all() []*peer {
	return slices.DeleteFunc(slices.Concat(c.peers, c.victims), func(p *peer) bool { return p == nil })
}

func (c *cast) stop() error {
	var stops []func() error
	for _, p := range c.all() {
		stops = append(stops, p.stop)
	}
	return together(stops...)
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

// together calls all functions in parallel and joins their errors.
func together(fs ...func() error) error {
	errs := make(chan error, len(fs)) // room for all, so that no sender waits
	for _, f := range fs {
		// Ends with f; the loop below waits for it.
		go func() { errs <- f() }()
	}
	var all []error
	for range fs {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

// pair is two languages in an order.
type pair struct{ a, b *peer }

// pairs returns all ordered pairs of two languages.
func pairs(peers []*peer) []pair {
	var list []pair
	for _, a := range peers {
		for _, b := range peers {
			if a != b {
				list = append(list, pair{a, b})
			}
		}
	}
	return list
}

func (p pair) String() string { return p.a.lang + "-" + p.b.lang }

// eachPair calls f for all ordered pairs in parallel, each with a path of its own below root.
func eachPair(root string, peers []*peer, f func(p pair, path string) error) error {
	var fs []func() error
	for _, p := range pairs(peers) {
		fs = append(fs, func() error {
			if err := f(p, root+"-"+p.String()); err != nil {
				return fmt.Errorf("%s: %w", p, err)
			}
			return nil
		})
	}
	return together(fs...)
}

// those returns the peers of these languages.
func those(peers []*peer, langs ...string) []*peer {
	return slices.DeleteFunc(slices.Clone(peers), func(p *peer) bool { return !slices.Contains(langs, p.lang) })
}

// children returns the names below path, or none if there is no such znode.
func (c *cast) children(path string) ([]string, error) {
	names, _, err := c.conn.Children(path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	return names, err
}

// standing waits until path has n children.
func (c *cast) standing(ctx context.Context, path string, n int) error {
	var names []string
	var err error
	e := cases.Eventually(ctx, fmt.Sprintf("%d znodes below %s", n, path), func() bool {
		names, err = c.children(path)
		return err != nil || len(names) == n
	})
	if e != nil {
		e = fmt.Errorf("%w: there are %q", e, names)
	}
	return errors.Join(err, e)
}
