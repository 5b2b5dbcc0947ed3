package main

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/server"
)

// shown is the metrics that Telegraf shows, by the address of a member and by name.
type shown map[string]map[string]string

// telegraf gathers what mntr says of each member, once a second.
type telegraf struct {
	program string
	process *server.Process
}

func installTelegraf(ctx context.Context, root string) (string, func(context.Context, *world) string) {
	const version = "1.37.2"
	m := &telegraf{program: install.GoProgram(ctx, root, "github.com/influxdata/telegraf v"+version,
		filepath.Join(root, "test", "compat", "programs", "telegraf", "telegraf.go.txt"))}
	return version, m.check
}

// check creates znodes and kills the ensemble's leader, and expects after each that Telegraf shows
// what is so.
func (m *telegraf) check(ctx context.Context, w *world) string {
	const created = 25
	m.process = w.start("telegraf", exec.Command(m.program, w.ensemble.Addrs()...))
	before := m.await(ctx, w, "the metrics of three members", func(at shown) error {
		return m.leads(w, at, 2)
	})
	conn, _, err := zk.Connect(w.ensemble.Addrs(), 10*time.Second, zk.WithLogInfo(false))
	must.Do(err)
	defer conn.Close()
	for i := range created {
		must.Get(conn.Create(fmt.Sprintf("/monitored-%d", i), nil, 0, zk.WorldACL(zk.PermAll)))
	}
	m.await(ctx, w, "the created znodes", func(at shown) error {
		for addr, metrics := range at {
			if was, is := number(before[addr]["znode_count"]), number(metrics["znode_count"]); is != was+created {
				return fmt.Errorf("%s has %v znodes and had %v", addr, is, was)
			}
		}
		return nil
	})
	w.killLeader(ctx)
	m.await(ctx, w, "a leader with one follower", func(at shown) error { return m.leads(w, at, 1) })
	w.returnLeader(ctx)
	last := m.await(ctx, w, "a leader with two followers", func(at shown) error { return m.leads(w, at, 2) })
	names := make(map[string]bool)
	for _, metrics := range last {
		for name := range metrics {
			names[name] = true
		}
	}
	return fmt.Sprintf("%d metrics, right before and after", len(names))
}

// await waits until ready accepts the metrics of the running members, and returns them.
func (m *telegraf) await(ctx context.Context, w *world, what string, ready func(shown) error) (at shown) {
	w.await(ctx, what, func() error {
		at = m.values()
		return ready(at)
	})
	return at
}

// leads returns an error unless one member is shown with this many followers, the other running
// members with none, and each with all its metrics.
func (m *telegraf) leads(w *world, at shown, followers int) error {
	leaders := 0
	for _, addr := range w.ensemble.Addrs() {
		metrics := at[addr]
		if followers == 1 && addr == w.dead.Addr() {
			continue
		}
		for _, name := range telegrafMetrics {
			if _, ok := metrics[name]; !ok {
				return fmt.Errorf("%s has no %s; it has %s", addr, name, slices.Sorted(maps.Keys(metrics)))
			}
		}
		if n := number(metrics["synced_followers"]); n == followers {
			leaders++
		} else if n != 0 {
			return fmt.Errorf("%s has %d followers", addr, n)
		}
	}
	if leaders != 1 {
		return fmt.Errorf("%d members lead %d followers", leaders, followers)
	}
	return nil
}

// number returns the number of a metric, and 0 for a missing one.
func number(value string) int {
	f, _ := strconv.ParseFloat(strings.TrimSuffix(value, "i"), 64)
	return int(f)
}

// telegrafLine is a line about a member.
var telegrafLine = regexp.MustCompile(`(?m)^zookeeper,port=(\d+),server=([^,]+),state=\w+ (\S+) \d+$`)

// values returns the latest metrics of each member that has answered.
func (m *telegraf) values() shown {
	at := make(shown)
	for _, f := range telegrafLine.FindAllStringSubmatch(m.process.Log(), -1) {
		metrics := make(map[string]string)
		for _, field := range strings.Split(f[3], ",") {
			name, value, _ := strings.Cut(field, "=")
			metrics[name] = value
		}
		at[f[2]+":"+f[1]] = metrics
	}
	return at
}

// telegrafMetrics are the metrics that each member has.
var telegrafMetrics = strings.Fields(`approximate_data_size avg_latency ephemerals_count max_file_descriptor_count
	max_latency min_latency num_alive_connections open_file_descriptor_count outstanding_requests
	packets_received packets_sent version watch_count znode_count`)
