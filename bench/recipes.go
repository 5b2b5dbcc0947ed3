//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/election"
	"github.com/gozkd/gozkd/recipes/lock"
	"github.com/gozkd/gozkd/recipes/queue"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/server"
)

// peer is a recipe library, run as a process that measures itself.
type peer struct {
	name string
	rows []string
	// command returns the process that measures a row.
	command func(ctx context.Context, args ...string) *exec.Cmd
}

// peerResult is the output of a peer.
type peerResult struct {
	N        int     // cycles, hand-overs or items
	All      int     // including the unmeasured cycles before
	Seconds  float64 // measured time
	P50, P99 float64 // microseconds; 0 in queue rows

	cpu      time.Duration // of the peer's process since its start
	requests int64         // that the server received since the peer's start
}

// recipeRows are the rows, each with the unit that N counts.
var recipeRows = []struct{ name, title, unit string }{
	{"lock", "one client takes a lock and lets it go", "cycle"},
	{"handover", "eleven clients in line: from the start of a release until the next has the lock", "hand-over"},
	{"leadership", "three candidates in line: from the start of closing the leader's latch until the next leads", "change"},
	{"queue", "four producers and four consumers, items of 100 bytes", "item"},
	{"queue-built", "the same; Curator's DistributedQueue, which reads ahead", "item"},
}

func benchRecipes(ctx context.Context, s *settings) {
	peers := recipePeers(ctx, "recipes-peer", "Peer.java", "peer.py")
	var list []reading
	for _, k := range s.servers {
		s.out.attempt(ctx, "", k.Name, func() {
			with(ctx, k, server.Options{Keys: keys()}, func(p *server.Process) { list = append(list, recipesOn(ctx, s, k, p, peers)...) })
		})
	}
	s.out.report("recipes", "Recipes, by library; requests and CPU of the client for each", list)
	for _, row := range recipeRows {
		s.out.printf("\n* %s: %s", row.name, row.title)
	}
	s.out.printf("\n")
}

// recipesOn measures all peers on a server in turn.
func recipesOn(ctx context.Context, s *settings, k server.Kind, p *server.Process, peers []peer) (list []reading) {
	for _, row := range recipeRows {
		if !strings.HasPrefix(row.name, s.rows) {
			continue
		}
		results := make(map[string][]peerResult)
		for round := range s.rounds {
			for _, peer := range peers {
				if !slices.Contains(peer.rows, row.name) {
					continue
				}
				progress("%s, %s, %s, round %d of %d", k.Name, row.name, peer.name, round+1, s.rounds)
				root := fmt.Sprintf("/bench-%s-%s-%d", row.name, peer.name, round)
				s.out.attempt(ctx, row.name+", "+peer.name, p.Name(), func() {
					results[peer.name] = append(results[peer.name], runPeer(ctx, s, p, peer, row.name, root))
				})
			}
		}
		for _, peer := range peers {
			if results[peer.name] == nil {
				continue
			}
			note := func(what string, of func(peerResult) float64) {
				var v []float64
				for _, r := range results[peer.name] {
					v = append(v, of(r))
				}
				list = append(list, reading{row.name + ", " + peer.name, what, p.Name(), spreadOf(v)})
			}
			note(row.unit+"s/s", func(r peerResult) float64 { return float64(r.N) / r.Seconds })
			note("p50 µs", func(r peerResult) float64 { return r.P50 })
			note("p99 µs", func(r peerResult) float64 { return r.P99 })
			note("requests per "+row.unit, func(r peerResult) float64 { return float64(r.requests) / float64(r.All) })
			note("client CPU µs per "+row.unit, func(r peerResult) float64 { return float64(r.cpu.Microseconds()) / float64(r.All) })
		}
	}
	return list
}

func runPeer(ctx context.Context, s *settings, p *server.Process, peer peer, row, root string) (r peerResult) {
	seconds, warm := s.seconds.Seconds(), s.warm.Seconds()
	before := packets(ctx, p.Addr())
	r.cpu = peer.run(ctx, &r, p.Addr(), root, row, fmt.Sprint(seconds), fmt.Sprint(warm))
	r.requests = packets(ctx, p.Addr()) - before
	if r.N == 0 || r.All == 0 {
		must.Failf("no result: %+v", r)
	}
	return r
}

// run runs the peer's process, reads its output, JSON, and returns its processor time.
func (p *peer) run(ctx context.Context, into any, args ...string) time.Duration {
	cmd := p.command(ctx, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, into)
	}
	if err != nil {
		must.Failf("%s printed %q: %w", strings.Join(cmd.Args, " "), out, err)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// packets returns how many packets a server has received from clients.
func packets(ctx context.Context, addr string) int64 {
	return must.Get(strconv.ParseInt(must.Get(server.Srvr(ctx, addr))["Received"], 10, 64))
}

// recipePeers returns the libraries. own is the command of this program, java and py are the files
// of bench/peers that measure.
func recipePeers(ctx context.Context, own, java, py string) []peer {
	root := install.Root(ctx)
	classPath := install.MavenZooKeeper(ctx, root)
	python := install.Kazoo(ctx, root)
	self := must.Get(os.Executable())
	dir := filepath.Join(root, "bench", "peers")
	all := []string{"lock", "handover", "leadership", "queue"}
	return []peer{
		{"gozkd", append(all, "queue-built"), func(ctx context.Context, args ...string) *exec.Cmd {
			return exec.CommandContext(ctx, self, append([]string{own}, args...)...)
		}},
		{"Curator", append(all, "queue-built"), func(ctx context.Context, args ...string) *exec.Cmd {
			log := "-Dlogback.configurationFile=" + filepath.Join(root, "test", "compat", "java", "logback.xml")
			return exec.CommandContext(ctx, "java", append([]string{"-Xss256k", log, "-cp", classPath, filepath.Join(dir, java)}, args...)...)
		}},
		{"kazoo", all, func(ctx context.Context, args ...string) *exec.Cmd {
			return exec.CommandContext(ctx, python, append([]string{filepath.Join(dir, py)}, args...)...)
		}},
	}
}

// recipesPeer measures our recipes in a process of its own, as the other libraries are measured.
// args are an address, a root path, a row, the measured seconds, and the unmeasured seconds before.
func recipesPeer(ctx context.Context, args []string) {
	if len(args) != 5 {
		must.Failf("recipes-peer: %d arguments, want 5", len(args))
	}
	seconds, warm := must.Get(strconv.ParseFloat(args[3], 64)), must.Get(strconv.ParseFloat(args[4], 64))
	n := 8
	switch args[2] {
	case "lock":
		n = 1
	case "handover":
		n = 11
	case "leadership":
		n = 3
	}
	var clients []*recipes.Client
	for range n {
		clients = append(clients, must.Get(recipes.Connect(ctx, []string{args[0]})))
	}
	span := span{begin: time.Now().Add(time.Duration(warm * float64(time.Second)))}
	span.end = span.begin.Add(time.Duration(seconds * float64(time.Second)))
	ctx, cancel := context.WithDeadline(ctx, span.end)
	defer cancel()
	var r peerResult
	switch args[2] {
	case "lock", "handover":
		r = peerLocks(ctx, clients, args[2] == "handover", span, func(c *recipes.Client) func() (func() error, error) {
			m := lock.NewMutex(c, args[1]+"/lock", nil)
			return func() (func() error, error) {
				l, err := m.Lock(ctx)
				return func() error { return l.Release(ctx) }, err
			}
		})
	case "leadership":
		r = peerLocks(ctx, clients, true, span, func(c *recipes.Client) func() (func() error, error) {
			return func() (func() error, error) {
				l := election.NewLatch(c, args[1]+"/leader", "x")
				must.Do(l.Start(ctx))
				_, err := l.Await(ctx)
				return l.Close, err
			}
		})
	case "queue":
		r = peerQueue(ctx, clients, func(c *recipes.Client) *queue.Queue { return queue.NewSimple(c, args[1]+"/queue") }, span)
	case "queue-built":
		r = peerQueue(ctx, clients, func(c *recipes.Client) *queue.Queue { return queue.New(c, args[1]+"/queue") }, span)
	default:
		must.Failf("recipes-peer: no row %q", args[2])
	}
	r.Seconds = seconds
	for _, c := range clients {
		must.Do(c.Close())
	}
	must.Do(json.NewEncoder(os.Stdout).Encode(r))
}

// span is the measured time.
type span struct{ begin, end time.Time }

func (s span) has(t time.Time) bool { return t.After(s.begin) && t.Before(s.end) }

// peerLocks makes each client acquire and release in a loop. handover measures from the start of a
// release until the next client has acquired, otherwise the whole cycle is measured. takes returns
// a client's function that acquires, whose result releases.
func peerLocks(ctx context.Context, clients []*recipes.Client, handover bool, span span, takes func(c *recipes.Client) func() (func() error, error)) peerResult {
	var (
		works    []func()
		mu       sync.Mutex // guards times
		times    []time.Duration
		all      atomic.Int64
		released atomic.Pointer[time.Time]
	)
	for _, c := range clients {
		works = append(works, func() {
			take := takes(c)
			for ctx.Err() == nil {
				began := time.Now()
				release, err := take()
				now := time.Now()
				if err != nil {
					if ctx.Err() == nil {
						must.Do(err)
					}
					return
				}
				if last := released.Load(); handover && last != nil && span.has(*last) {
					mu.Lock()
					times = append(times, now.Sub(*last))
					mu.Unlock()
				}
				now = time.Now()
				released.Store(&now)
				err = release()
				all.Add(1)
				if err == nil && !handover && span.has(began) {
					times = append(times, time.Since(began))
				}
			}
		})
	}
	must.All(works...)
	if len(times) == 0 {
		must.Failf("no time was measured")
	}
	slices.Sort(times)
	us := func(i int) float64 { return float64(times[i].Nanoseconds()) / 1e3 }
	return peerResult{N: len(times), All: int(all.Load()), P50: us(len(times) / 2), P99: us(len(times) * 99 / 100)}
}

// peerQueue makes every second client put items and the others take them.
func peerQueue(ctx context.Context, clients []*recipes.Client, queueOf func(c *recipes.Client) *queue.Queue, span span) peerResult {
	var (
		works      []func()
		taken, all atomic.Int64
		item       = make([]byte, 100)
	)
	for i, c := range clients {
		works = append(works, func() {
			q := queueOf(c)
			for ctx.Err() == nil {
				var failed error
				if i%2 == 0 {
					failed = q.Put(ctx, item)
				} else if _, failed = q.Take(ctx); failed == nil {
					all.Add(1)
					if span.has(time.Now()) {
						taken.Add(1)
					}
				}
				if ctx.Err() == nil {
					must.Do(failed)
				}
			}
		})
	}
	must.All(works...)
	return peerResult{N: int(taken.Load()), All: int(all.Load())}
}
