package interop

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
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
	conn, events, err := zk.Connect(strings.Split(addr, ","), sessionTimeout, zk.WithLogger(log.New(io.Discard, "", 0)))
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

// start starts all processes side by side.
func (c *cast) start(ctx context.Context, addr string, commands []Command) {
	c.peers, c.victims = make([]*peer, len(commands)), make([]*peer, len(commands))
	var starts []func()
	for i, command := range commands {
		starts = append(starts,
			func() { c.peers[i] = startPeer(ctx, command, addr, sessionTimeout) },
			func() { c.victims[i] = startPeer(ctx, command, addr, victimTimeout) })
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

// Languages, named by their recipe library.
const (
	Curator = "Curator"
	Kazoo   = "kazoo"
	Go      = "Go"
)

// scenarios returns all scenarios without a death.
func (c *cast) scenarios() []cases.Case {
	list := []cases.Case{
		{Name: "mutex_wakes", Run: c.wakes(curatorNames, "lock")},
		{Name: "mutex_in_line", Run: c.inLine},
		{Name: "mutex_leaves_the_line", Run: c.leavesTheLine},
		{Name: "mutex_many", Run: c.mutexMany(curatorNames)},
		{Name: "mutex_revoked", Run: c.revokes},
		{Name: "write_lock_wakes", Run: c.wakes(curatorNames, "wlock")},
		{Name: "readers_and_writer", Run: c.readersAndWriter(curatorNames)},
		{Name: "downgrade", Run: c.downgrades},
		{Name: "read_write_many", Run: c.readWriteMany(curatorNames)},
		{Name: "semaphore_wakes", Run: c.semaphoreWakes(curatorNames)},
		{Name: "semaphore_many", Run: c.semaphoreMany(curatorNames)},
		{Name: "semaphore_maximum_grows", Run: c.maximumGrows},
		{Name: "latch_wakes", Run: c.elects(curatorNames, "latch")},
		{Name: "latch_many", Run: c.electsMany(curatorNames, "latch")},
		{Name: "selector_wakes", Run: c.elects(curatorNames, "select")},
		{Name: "selector_many", Run: c.electsMany(curatorNames, "select")},
		{Name: "queue_simple", Run: c.queue("simple")},
		{Name: "queue_distributed", Run: c.queue("queue")},
		{Name: "queue_priority", Run: c.queuePriority("priority")},
		{Name: "queue_delay", Run: c.queueDelay},
		{Name: "queue_id", Run: c.queue("id")},
		{Name: "queue_locked", Run: c.queue("locked")},
		{Name: "queue_returned", Run: c.returns("locked")},
		{Name: "barrier", Run: c.barrier},
		{Name: "double_barrier", Run: c.doubleBarrier},
		{Name: "count_int", Run: c.counts("int")},
		{Name: "count_long", Run: c.counts("long")},
		{Name: "value", Run: c.value},
		{Name: "group", Run: c.group},
		{Name: "persistent_node", Run: c.persistentNode},
		{Name: "discovery", Run: c.discovery},
	}
	if len(those(c.peers, Go, Curator)) == 2 {
		list = append(list, cases.Case{Name: "discovery_bytes", Run: c.instanceBytes},
			cases.Case{Name: "discovery_objects", Run: c.discoveryObjects})
	}
	switch {
	case len(those(c.peers, Curator)) == 0:
		list = append(list, c.kazooScenarios()...)
	case len(those(c.peers, Kazoo)) > 0:
		list = append(list, cases.Case{Name: "curator_needs_its_own_names", Run: c.ownNames})
	}
	return list
}

// kazooScenarios returns those that Go shares with an unconfigured kazoo, and Curator does not.
func (c *cast) kazooScenarios() []cases.Case {
	return []cases.Case{
		{Name: "kazoo_lock_wakes", Run: c.wakes(kazooNames, "lock")},
		{Name: "kazoo_lock_many", Run: c.mutexMany(kazooNames)},
		{Name: "kazoo_readers_and_writer", Run: c.readersAndWriter(kazooNames)},
		{Name: "kazoo_read_write_many", Run: c.readWriteMany(kazooNames)},
		{Name: "kazoo_semaphore_wakes", Run: c.semaphoreWakes(kazooNames)},
		{Name: "kazoo_semaphore_many", Run: c.semaphoreMany(kazooNames)},
		{Name: "kazoo_election_wakes", Run: c.elects(kazooNames, "select")},
		{Name: "kazoo_election_many", Run: c.electsMany(kazooNames, "select")},
		{Name: "kazoo_queue", Run: c.queue("kazoo")},
		{Name: "kazoo_queue_priority", Run: c.queuePriority("kazoo")},
		{Name: "kazoo_queue_locked", Run: c.queue("kazoo-locked")},
		{Name: "kazoo_queue_returned", Run: c.returns("kazoo-locked")},
		{Name: "kazoo_count", Run: c.counts("kazoo-int")},
		{Name: "kazoo_party", Run: c.party("deep")},
		{Name: "kazoo_shallow_party", Run: c.party("shallow")},
		{Name: "kazoo_partitioner", Run: c.partition},
		{Name: "kazoo_lease", Run: c.lease},
		{Name: "extra_patterns_wakes", Run: c.wakes(bothNames, "lock")},
		{Name: "extra_patterns_many", Run: c.mutexMany(bothNames)},
		{Name: "extra_patterns_readers_and_writer", Run: c.readersAndWriter(bothNames)},
		{Name: "extra_patterns_election", Run: c.electsMany(bothNames, "select")},
		{Name: "extra_patterns_read_write_many", Run: c.readWriteMany(bothNames)},
	}
}

// Hex returns bytes as peers read and print them.
func Hex(b []byte) string {
	if len(b) == 0 {
		return "-"
	}
	return hex.EncodeToString(b)
}

// Unhex returns the bytes of a word that Hex returned.
func Unhex(s string) []byte {
	if s == "-" {
		return nil
	}
	return must.Get(hex.DecodeString(s))
}
