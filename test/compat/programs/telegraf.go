package main

import (
	"context"
	"fmt"
	"maps"
	"os"
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

// shown is the metrics that a monitor shows, by the address of a member and by name.
type shown map[string]map[string]string

// monitor is a program that gathers what mntr says of each member, once a second.
type monitor struct {
	// start starts the program for all members.
	start func(w *world)
	// values returns the latest metrics of each member that has answered.
	values            func(w *world) shown
	znodes, followers string   // what it calls the number of znodes and of followers in step
	each              []string // the metrics that each member has
}

// check creates znodes and kills the ensemble's leader, and expects after each that the monitor
// shows what is so.
func (m *monitor) check(ctx context.Context, w *world) string {
	const created = 25
	m.start(w)
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
			if was, is := number(before[addr][m.znodes]), number(metrics[m.znodes]); is != was+created {
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
func (m *monitor) await(ctx context.Context, w *world, what string, ready func(shown) error) (at shown) {
	w.await(ctx, what, func() error {
		at = m.values(w)
		return ready(at)
	})
	return at
}

// leads returns an error unless one member is shown with this many followers, the other running
// members with none, and each with all its metrics.
func (m *monitor) leads(w *world, at shown, followers int) error {
	leaders := 0
	for _, addr := range w.ensemble.Addrs() {
		metrics := at[addr]
		if followers == 1 && addr == w.dead.Addr() {
			continue
		}
		for _, name := range m.each {
			if _, ok := metrics[name]; !ok {
				return fmt.Errorf("%s has no %s; it has %s", addr, name, slices.Sorted(maps.Keys(metrics)))
			}
		}
		if n := number(metrics[m.followers]); n == followers {
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

func installTelegraf(ctx context.Context, root string) (string, func(context.Context, *world) string) {
	const version = "1.37.2"
	program := install.GoProgram(ctx, root, "github.com/influxdata/telegraf v"+version,
		filepath.Join(root, "test", "compat", "programs", "telegraf", "telegraf.go.txt"))
	var process *server.Process
	line := regexp.MustCompile(`(?m)^zookeeper,port=(\d+),server=([^,]+),state=\w+ (\S+) \d+$`)
	m := &monitor{
		start: func(w *world) { process = w.start("telegraf", exec.Command(program, w.ensemble.Addrs()...)) },
		values: func(*world) shown {
			at := make(shown)
			for _, f := range line.FindAllStringSubmatch(process.Log(), -1) {
				metrics := make(map[string]string)
				for _, field := range strings.Split(f[3], ",") {
					name, value, _ := strings.Cut(field, "=")
					metrics[name] = value
				}
				at[f[2]+":"+f[1]] = metrics
			}
			return at
		},
		znodes: "znode_count", followers: "synced_followers",
		each: strings.Fields(`approximate_data_size avg_latency ephemerals_count max_file_descriptor_count
			max_latency min_latency num_alive_connections open_file_descriptor_count outstanding_requests
			packets_received packets_sent version watch_count znode_count`),
	}
	return version, m.check
}

func installCollectd(ctx context.Context, root string) (string, func(context.Context, *world) string) {
	dir, version := install.Collectd(ctx, root)
	processes := make(map[string]*server.Process)
	line := regexp.MustCompile(`(?m)^PUTVAL "?[^/]+/zookeeper/(\S+?)"? interval=\S+ ([0-9.]+):(\S+)$`)
	m := &monitor{
		start: func(w *world) {
			clear(processes)
			for i, addr := range w.ensemble.Addrs() {
				name := fmt.Sprintf("collectd-%d", i)
				host, port, _ := strings.Cut(addr, ":")
				config := filepath.Join(w.dir, name+".conf")
				must.Do(os.WriteFile(config, fmt.Appendf(nil, `Hostname "%s"
FQDNLookup false
Interval 1
BaseDir "%s"
PIDFile "%[2]s/%[1]s.pid"
PluginDir "%[3]s/usr/lib/collectd"
TypesDB "%[3]s/usr/share/collectd/types.db"
LoadPlugin logfile
LoadPlugin csv
LoadPlugin zookeeper
<Plugin logfile>
  File stderr
</Plugin>
<Plugin csv>
  DataDir "stdout"
</Plugin>
<Plugin zookeeper>
  Host "%[4]s"
  Port "%[5]s"
</Plugin>
`, name, w.dir, dir, host, port), 0o644))
				cmd := exec.Command(filepath.Join(dir, "usr/sbin/collectd"), "-f", "-C", config)
				cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+install.DebLibraries(dir))
				processes[addr] = w.start(name, cmd)
			}
		},
		values: func(*world) shown {
			at := make(shown)
			for addr, p := range processes {
				// The lines of the newest read may still be in collectd's buffer.
				var newest float64
				var latest map[string]string
				for _, f := range line.FindAllStringSubmatch(p.Log(), -1) {
					seconds := must.Get(strconv.ParseFloat(f[2], 64))
					if seconds > newest+0.5 {
						at[addr], latest = latest, make(map[string]string)
					}
					newest = seconds
					latest[f[1]] = f[3]
				}
			}
			return at
		},
		znodes: "gauge-znode", followers: "count-synced_followers",
		each: strings.Fields(`bytes-approximate_data_size count-quorum current_connections file_handles-max
			file_handles-open gauge-ephemerals gauge-watch gauge-znode latency-avg latency-max latency-min
			packets-received packets-sent requests-outstanding`),
	}
	return version, m.check
}
