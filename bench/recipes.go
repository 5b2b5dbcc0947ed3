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

func benchRecipes(ctx context.Context, s *settings) error {
	peers, err := recipePeers(ctx)
	if err != nil {
		return err
	}
	var list []reading
	for _, k := range s.servers {
		p, err := k.start(ctx, server.Options{Keys: keys()})
		if err != nil {
			return err
		}
		figures, err := recipesOn(ctx, s, k, p, peers)
		if err := errors.Join(err, p.Stop()); err != nil {
			if err := s.out.fail(ctx, "", k.name, err); err != nil {
				return err
			}
		}
		list = append(list, figures...)
	}
	return s.out.readings("recipes", list)
}

// recipesOn measures all peers on a server in turn.
func recipesOn(ctx context.Context, s *settings, k kind, p *server.Process, peers []peer) (list []reading, err error) {
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
				r, err := runPeer(ctx, s, p, peer, row.name, root)
				if err != nil {
					if err := s.out.fail(ctx, row.name+", "+peer.name, p.Name(), err); err != nil {
						return nil, err
					}
					continue
				}
				results[peer.name] = append(results[peer.name], r)
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
	return list, nil
}

func runPeer(ctx context.Context, s *settings, p *server.Process, peer peer, row, root string) (r peerResult, err error) {
	seconds, warm := s.seconds.Seconds(), s.warm.Seconds()
	before, err := packets(ctx, p.Addr())
	if err != nil {
		return r, err
	}
	cmd := peer.command(ctx, p.Addr(), root, row, fmt.Sprint(seconds), fmt.Sprint(warm))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return r, fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	after, err := packets(ctx, p.Addr())
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(out, &r); err != nil || r.N == 0 || r.All == 0 {
		return r, fmt.Errorf("it printed %q: %w", out, errors.Join(err, errors.New("no result")))
	}
	r.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	r.requests = after - before
	return r, nil
}

// packets returns how many packets a server has received from clients.
func packets(ctx context.Context, addr string) (int64, error) {
	text, err := server.FourLetterWord(ctx, addr, "srvr")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if n, ok := strings.CutPrefix(line, "Received: "); ok {
			return strconv.ParseInt(strings.TrimSpace(n), 10, 64)
		}
	}
	return 0, fmt.Errorf("srvr of %s says nothing of what it received: %q", addr, text)
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
func recipePeers(ctx context.Context) ([]peer, error) {
	root, err := install.Root(ctx)
	if err != nil {
		return nil, err
	}
	classPath, err := install.MavenZooKeeper(ctx, root)
	if err != nil {
		return nil, err
	}
	python, err := install.Kazoo(ctx, root)
	if err != nil {
		return nil, err
	}
	own, err := os.Executable()
	if err != nil {
		return nil, err
	}
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
	}, nil
}
