package metrics_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/metrics"
	"github.com/gozkd/gozkd/server"
)

// documented returns the status of the names of ZooKeeper in docs/reference/monitoring.md: same,
// constant or left out. Names that the page does not mention are the same.
func documented(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../docs/reference/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	tables := regexp.MustCompile(`(?m)^\| (same|constant|left out).*\n\|---\|---\|\n((?:\|.*\n)+)`).FindAllStringSubmatch(string(text), -1)
	says := make(map[string]string)
	for _, table := range tables {
		for row := range strings.Lines(table[2]) {
			for _, name := range strings.Fields(strings.Split(row, "|")[1]) {
				name = strings.Trim(name, "`")
				if before, twice := says[name]; twice {
					t.Errorf("docs/reference/monitoring.md has %s twice: %s, %s", name, before, table[1])
				}
				says[name] = table[1]
			}
		}
	}
	return says
}

// form is the shape of a metric family: its type, and the labels and quantiles of each kind of
// sample.
type form struct {
	typ    string
	labels map[string]bool
}

// formsOf parses a text in Prometheus's format.
func formsOf(lines map[string]string) map[string]*form {
	forms := make(map[string]*form)
	for line, value := range lines {
		if name, ok := strings.CutPrefix(line, "TYPE "); ok {
			forms[name] = &form{value, make(map[string]bool)}
		}
	}
	sample := regexp.MustCompile(`^([a-z0-9_]+)(\{.*\})?$`)
	key := regexp.MustCompile(`key="[^"]*"`)
	for line := range lines {
		m := sample.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		for _, suffix := range []string{"", "_count", "_sum"} {
			if name, ok := strings.CutSuffix(m[1], suffix); ok && forms[name] != nil && (suffix == "" || forms[name].typ == "summary") {
				forms[name].labels[suffix+strings.ReplaceAll(key.ReplaceAllString(m[2], "key"), ",}", "}")] = true
			}
		}
	}
	return forms
}

// TestZooKeepersNames compares our metrics with those of ZooKeeper: each has the same name, type
// and labels, unless docs/reference/monitoring.md says that it is constant or left out.
func TestZooKeepersNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		says := documented(t)
		servers := map[string]*server.Server{"standalone": start(t, server.Config{InProcess: true, Dir: t.TempDir(), EnforceQuota: true})}
		three := startThree(t)
		servers["leader"], servers["follower"] = three[0], three[1]
		seen, there := make(map[string]bool), make(map[string]bool)
		for role, s := range servers {
			work(t, s)
			theirs := formsOf(read(t, filepath.Join("testdata", "metrics-3.9.5-"+role+".txt")))
			ours := formsOf(exposed(t, metrics.New(s.Facts())))
			for name, is := range theirs {
				seen[name] = true
				switch status, got := says[name], ours[name]; {
				case status == "left out" && got != nil:
					t.Errorf("%s: %s should be left out, but exists", role, name)
				case status == "left out":
				case got == nil && len(is.labels) == 0: // ZooKeeper had none of these, either
				case got == nil:
					t.Errorf("%s: %s is missing", role, name)
				case got.typ != is.typ:
					t.Errorf("%s: %s is a %s, in ZooKeeper a %s", role, name, got.typ, is.typ)
				case len(is.labels) > 0 && !maps.Equal(got.labels, is.labels):
					t.Errorf("%s: %s has samples %v, in ZooKeeper %v", role, name, slices.Sorted(maps.Keys(got.labels)), slices.Sorted(maps.Keys(is.labels)))
				}
			}
			for name := range ours {
				there[name] = true
			}
			for _, v := range s.Facts().Monitor() {
				if n, ok := v.Is.(int64); says[v.Name] == "constant" && ok && n != 0 {
					t.Errorf("%s: %s should be constant, but is %d", role, v.Name, n)
				}
			}
		}
		for name, status := range says {
			if !seen[name] && !strings.HasPrefix(name, "om_") && name != "jvm_pause_time_ms" && name != "prep_process_time" && name != "proposal_process_time" && name != "commit_process_time" && name != "sync_process_time" {
				t.Errorf("docs/reference/monitoring.md mentions %s, which no ZooKeeper has", name)
			}
			if status != "left out" && !there[name] {
				t.Errorf("docs/reference/monitoring.md says that there is %s", name)
			}
		}
		for name := range seen {
			if says[name] != "left out" && !there[name] {
				t.Errorf("%s of ZooKeeper is missing, and docs/reference/monitoring.md does not leave it out", name)
			}
		}
		for name := range there {
			if !seen[name] && says[name] == "" && !strings.HasPrefix(name, "gozkd_") && name != "followers" && name != "fsync_threshold_exceed_count" && name != "sync_process_time" {
				t.Errorf("%s is neither ZooKeeper's nor ours", name)
			}
		}
	})
}

// TestZooKeepersWord compares the lines of mntr with ZooKeeper's, except those that
// docs/reference/monitoring.md leaves out.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

func TestZooKeepersWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		says := documented(t)
		part := regexp.MustCompile(`^(avg|min|max|cnt|sum|p50|p95|p99|p999)_(.+)$`)
		three := startThree(t)
		for role, s := range map[string]*server.Server{"standalone": start(t, server.Config{InProcess: true, EnforceQuota: true}), "leader": three[0], "follower": three[1]} {
			work(t, s)
			ours := make(map[string]bool)
			for _, v := range s.Facts().Monitor() {
				for key := range v.Lines() {
					ours[key] = true
				}
			}
			text, err := os.ReadFile(filepath.Join("testdata", "mntr-3.9.5-"+role+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			lines := 0
			for line := range strings.Lines(string(text)) {
				key, _, _ := strings.Cut(strings.TrimPrefix(line, "zk_"), "\t")
				if strings.HasSuffix(key, "_namespace") || strings.Contains(key, "_learner_handler_") {
					continue // znodes of the recording
				}
				lines++
				name := key
				if m := part.FindStringSubmatch(key); m != nil && says[key] == "" {
					name = m[2]
				}
				if leftOut := says[name] == "left out"; leftOut == ours[key] {
					t.Errorf("%s: %s is left out by the page: %v, and there: %v", role, key, leftOut, ours[key])
				}
			}
			if lines < 400 {
				t.Errorf("%s: %d lines are recorded", role, lines)
			}
		}
	})
}

// TestAlerts checks that the metrics exist that the rules and panels in
// docs/reference/monitoring.md use, on each kind of server.
func TestAlerts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		three := startThree(t)
		for role, s := range map[string]*server.Server{"standalone": start(t, server.Config{InProcess: true, Dir: t.TempDir()}), "leader": three[0], "follower": three[1]} {
			samples := exposed(t, metrics.New(s.Facts()))
			wanted := []string{
				// ZooKeeper's own alert rules.
				"znode_count", "num_alive_connections", "approximate_data_size", "watch_count", "election_time_count", "open_file_descriptor_count",
				"fsynctime_sum", "fsynctime_count", "snapshottime_sum", "avg_latency",
				// Grafana's observability library.
				"outstanding_requests", "min_latency", "max_latency",
			}
			switch role {
			case "leader":
				wanted = append(wanted, "quorum_size", "leader_uptime")
			case "follower":
				wanted = append(wanted, "quorum_size")
			}
			for _, sample := range wanted {
				if samples[sample] == "" {
					t.Errorf("%s: there is no %s", role, sample)
				}
			}
		}
	})
}

// work performs each kind of operation that has a name of its own.
func work(t *testing.T, s *server.Server) {
	t.Helper()
	c, _, err := zk.Connect([]string{"127.0.0.1:2181"}, 10*time.Second, zk.WithLogger(quiet{}), zk.WithDialer(s.Dialer()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	create := func(path, data string) {
		t.Helper()
		if _, err := c.Create(path, []byte(data), 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			t.Fatal(err)
		}
	}
	create("/locks", "")
	create("/zookeeper/quota/locks", "")
	create("/zookeeper/quota/locks/zookeeper_limits", "count=2,bytes=100=;countHardLimit=2")
	create("/zookeeper/quota/locks/zookeeper_stats", "count=0,bytes=0")
	create("/locks/a", "data")
	if _, err = c.Create("/locks/b", nil, 0, zk.WorldACL(zk.PermAll)); errors.Is(err, zk.ErrNodeExists) {
		err = nil // created through another member
	}
	if enforced := is(s.Facts().Monitor(), "quorum_size") == nil; (err != nil) != enforced { // only the standalone server enforces quotas
		t.Fatalf("beyond the quota: %v", err)
	}
	if _, _, err := c.Get("/locks/a"); err != nil {
		t.Fatal(err)
	}
}

// read parses a text in Prometheus's format into the form of exposed.
func read(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return samplesOf(string(text))
}
