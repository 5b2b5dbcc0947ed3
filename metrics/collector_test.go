package metrics_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/metrics"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(watchdog.Watch(m)) }

func start(t *testing.T, cfg server.Config) *server.Server {
	t.Helper()
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// startThree starts an ensemble, in a bubble, and returns its members, the leader first, when each
// has all values that it can have.
func startThree(t *testing.T) []*server.Server {
	t.Helper()
	ensemble := zktest.StartEnsemble(t, 3)
	servers := []*server.Server{ensemble.Leader().Server()}
	for _, m := range ensemble.Followers() {
		servers = append(servers, m.Server())
	}
	for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(10 * time.Millisecond) {
		if v := servers[0].Facts().Monitor(); is(v, "synced_followers") == int64(2) && is(v, "gozkd_peer_lag_entries") != nil {
			return servers
		}
	}
	t.Fatal("no leader has two followers in step within a minute")
	return nil
}

// is returns the first value with that name, or nil.
func is(values []server.Value, name string) any {
	if i := slices.IndexFunc(values, func(v server.Value) bool { return v.Name == name }); i >= 0 {
		return values[i].Is
	}
	return nil
}

// exposed returns what a collector says, a line for each sample.
func exposed(t *testing.T, c prometheus.Collector) map[string]string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "metrics")
	if err := prometheus.WriteToTextfile(path, registry); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return samplesOf(string(text))
}

// samplesOf parses a text in Prometheus's format: samples map to their values, and "TYPE name" to
// the type.
func samplesOf(text string) map[string]string {
	lines := make(map[string]string)
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, typ, _ := strings.Cut(strings.TrimSpace(rest), " ")
			lines["TYPE "+name] = typ
		} else if !strings.HasPrefix(line, "#") {
			line = strings.TrimSpace(line)
			if i := strings.LastIndexByte(line, ' '); i > 0 {
				lines[line[:i]] = line[i+1:]
			}
		}
	}
	return lines
}

// All numbers of Monitor are collected, on a standalone server and on members, including the
// leader.
func TestCollector_HasAllOfMonitor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers := append(startThree(t), start(t, server.Config{InProcess: true, Dir: t.TempDir(), EnforceQuota: true}))
		for i, s := range servers {
			work(t, s)
			lines := exposed(t, metrics.New(s.Facts()))
			for _, v := range s.Facts().Monitor() {
				sample := v.Name
				switch v.Is.(type) {
				case string:
					if _, ok := lines["TYPE "+sample]; ok {
						t.Errorf("%s is a text, but collected", sample)
					}
					continue
				case server.Summary, server.Histogram:
					sample += "_count"
				}
				switch {
				case v.Peer != 0:
					sample += fmt.Sprintf(`{peer="%d"}`, v.Peer)
				case v.Name == "gozkd_request_duration_seconds":
					sample += fmt.Sprintf(`{op="%s"}`, v.Key)
				case v.Name == "gozkd_write_stage_duration_seconds":
					sample += fmt.Sprintf(`{stage="%s"}`, v.Key)
				case v.Key != "":
					sample += fmt.Sprintf(`{key="%s"}`, v.Key)
				}
				if _, ok := lines[sample]; !ok {
					t.Errorf("server %d: %s is not collected", i, sample)
				}
			}
		}
	})
}

// These are metrics that dashboards and alert rules for ZooKeeper use.
func TestCollector_NamesAndTypes(t *testing.T) {
	lines := exposed(t, metrics.New(start(t, server.Config{Dir: t.TempDir()}).Facts()))
	for name, typ := range map[string]string{
		"znode_count": "gauge", "num_alive_connections": "gauge", "approximate_data_size": "gauge", "watch_count": "gauge",
		"packets_received": "gauge", "outstanding_requests": "gauge", "min_latency": "gauge", "max_latency": "gauge", "avg_latency": "gauge",
		"connection_rejected": "counter", "stale_sessions_expired": "counter", "fsynctime": "summary", "snapshottime": "summary",
	} {
		if got := lines["TYPE "+name]; got != typ {
			t.Errorf("%s is a %q, want a %s", name, got, typ)
		}
	}
	if lines["znode_count"] != "5" || lines["num_alive_connections"] != "0" || lines["fsynctime_count"] == "" || lines["fsynctime_sum"] == "" {
		t.Error(lines)
	}
}

// The linter objects to ZooKeeper's names, and to none of ours.
func TestCollector_Lint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, s := range startThree(t) {
			work(t, s)
			problems, err := testutil.CollectAndLint(metrics.New(s.Facts()))
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range problems {
				if strings.HasPrefix(p.Metric, "gozkd_") {
					t.Errorf("%s: %s", p.Metric, p.Text)
				}
			}
		}
	})
}

// Servers in one registry do not collide, whatever state each is in.
func TestCollector_SeveralServers(t *testing.T) {
	registry := prometheus.NewRegistry()
	register := func(name string, s *server.Server) {
		prometheus.WrapRegistererWith(prometheus.Labels{"member": name}, registry).MustRegister(metrics.New(s.Facts()))
	}
	count := func() int {
		t.Helper()
		n, err := testutil.GatherAndCount(registry, "znode_count")
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	idle, err := server.New(server.Config{})
	if err != nil {
		t.Fatal(err)
	}
	closed := start(t, server.Config{})
	register("idle", idle)
	register("closed", closed)
	register("serving", start(t, server.Config{}))
	if n := count(); n != 2 {
		t.Errorf("%d servers have metrics, want 2: one is not started", n)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 1 {
		t.Errorf("%d servers have metrics, want 1: one is closed", n)
	}
	alone := prometheus.NewRegistry()
	alone.MustRegister(metrics.New(idle.Facts()))
	if err := alone.Register(metrics.New(closed.Facts())); err == nil {
		t.Error("a second collector without a label was accepted")
	}
}

// A server can be scraped while it starts and stops.
func TestCollector_WhileClosing(t *testing.T) {
	s, err := server.New(server.Config{})
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics.New(s.Facts()))
	over := make(chan struct{})
	var scraping sync.WaitGroup
	// Stopped by over, awaited below.
	scraping.Go(func() {
		for {
			if _, err := registry.Gather(); err != nil {
				t.Error(err)
			}
			select {
			case <-over:
				return
			default:
			}
		}
	})
	if err := s.Start(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	close(over)
	scraping.Wait()
}
