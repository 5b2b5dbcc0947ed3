//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
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
	{"queue", "four producers and four consumers, items of 100 bytes", "item"},
	{"queue-built", "the same; Curator's DistributedQueue, which reads ahead", "item"},
}

func benchRecipes(ctx context.Context, s *settings) {
	peers := recipePeers(ctx)
	var list []reading
	for _, k := range s.servers {
		s.out.attempt(ctx, "", k.name, func() {
			k.with(ctx, server.Options{Keys: keys()}, func(p *server.Process) { list = append(list, recipesOn(ctx, s, k, p, peers)...) })
		})
	}
	must.Do(s.out.readings("recipes", list))
}

// recipesOn measures all peers on a server in turn.
func recipesOn(ctx context.Context, s *settings, k kind, p *server.Process, peers []peer) (list []reading) {
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
				progress("%s, %s, %s, round %d of %d", k.name, row.name, peer.name, round+1, s.rounds)
				root := fmt.Sprintf("/bench-%s-%s-%d", row.name, peer.name, round)
				s.out.attempt(ctx, row.name+", "+peer.name, p.Name(), func() {
					results[peer.name] = append(results[peer.name], runPeer(ctx, s, p, peer, row.name, root))
				})
			}
		}
		for _, peer := range peers {
			var per, p50 []float64
			for _, r := range results[peer.name] {
				per, p50 = append(per, float64(r.N)/r.Seconds), append(p50, r.P50)
			}
			if per != nil {
				name := row.name + ", " + peer.name
				list = append(list, reading{name, row.unit + "s/s", p.Name(), spreadOf(per)}, reading{name, "p50 µs", p.Name(), spreadOf(p50)})
			}
		}
		printRecipeRow(s.out, k.name, row.title, row.unit, peers, results)
	}
	return list
}

func runPeer(ctx context.Context, s *settings, p *server.Process, peer peer, row, root string) (r peerResult) {
	seconds, warm := s.seconds.Seconds(), s.warm.Seconds()
	before := packets(ctx, p.Addr())
	cmd := peer.command(ctx, p.Addr(), root, row, fmt.Sprint(seconds), fmt.Sprint(warm))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		must.Failf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	after := packets(ctx, p.Addr())
	if err := json.Unmarshal(out, &r); err != nil || r.N == 0 || r.All == 0 {
		must.Failf("it printed %q: %w", out, errors.Join(err, errors.New("no result")))
	}
	r.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	r.requests = after - before
	return r
}

// packets returns how many packets a server has received from clients.
func packets(ctx context.Context, addr string) int64 {
	text := must.Get(server.FourLetterWord(ctx, addr, "srvr"))
	for line := range strings.Lines(text) {
		if n, ok := strings.CutPrefix(line, "Received: "); ok {
			return must.Get(strconv.ParseInt(strings.TrimSpace(n), 10, 64))
		}
	}
	must.Failf("srvr of %s says nothing of what it received: %q", addr, text)
	return 0
}

func printRecipeRow(o *output, server, title, unit string, peers []peer, results map[string][]peerResult) {
	middle := func(all []peerResult, f func(peerResult) float64) float64 {
		var v []float64
		for _, r := range all {
			v = append(v, f(r))
		}
		return median(v)
	}
	number := func(v float64, digits int) string {
		if v == 0 {
			return "–"
		}
		if v >= 1000 {
			return thousands(v)
		}
		return strconv.FormatFloat(v, 'f', digits, 64)
	}
	var rows [][]string
	for _, peer := range peers {
		all := results[peer.name]
		if len(all) == 0 {
			continue
		}
		rows = append(rows, []string{
			peer.name,
			number(middle(all, func(r peerResult) float64 { return float64(r.N) / r.Seconds }), 0),
			number(middle(all, func(r peerResult) float64 { return r.P50 }), 0),
			number(middle(all, func(r peerResult) float64 { return r.P99 }), 0),
			number(middle(all, func(r peerResult) float64 { return float64(r.requests) / float64(r.All) }), 1),
			number(middle(all, func(r peerResult) float64 { return float64(r.cpu.Microseconds()) / float64(r.All) }), 0),
		})
	}
	o.table(server+": "+title, []string{"library", unit + "s/s", "p50 µs", "p99 µs", "requests per " + unit, "client CPU µs per " + unit}, rows)
}

// recipePeers installs the peers.
func recipePeers(ctx context.Context) []peer {
	root := install.Root(ctx)
	classPath := install.MavenZooKeeper(ctx, root)
	python := install.Kazoo(ctx, root)
	own := must.Get(os.Executable())
	dir := filepath.Join(root, "bench", "peers")
	all := []string{"lock", "handover", "queue"}
	return []peer{
		{"gozkd", append(all, "queue-built"), func(ctx context.Context, args ...string) *exec.Cmd {
			return exec.CommandContext(ctx, own, append([]string{"recipes-peer"}, args...)...)
		}},
		{"Curator", append(all, "queue-built"), func(ctx context.Context, args ...string) *exec.Cmd {
			log := "-Dlogback.configurationFile=" + filepath.Join(root, "test", "compat", "java", "logback.xml")
			return exec.CommandContext(ctx, "java", append([]string{log, "-cp", classPath, filepath.Join(dir, "Peer.java")}, args...)...)
		}},
		{"kazoo", all, func(ctx context.Context, args ...string) *exec.Cmd {
			return exec.CommandContext(ctx, python, append([]string{filepath.Join(dir, "peer.py")}, args...)...)
		}},
	}
}
