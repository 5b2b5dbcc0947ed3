package metrics_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gozkd/gozkd/metrics"
	"github.com/gozkd/gozkd/server"
)

// conditional are metrics that exist only with a configuration that the servers of the test below
// do not have. tools/alerts has servers with them.
var conditional = []string{"gozkd_tls_certificate_expires_seconds", "gozkd_audit_dropped_total", "gozkd_archive_lag_seconds", "gozkd_archive_gaps_total",
	"gozkd_archive_verified_seconds", "gozkd_archive_verify_failed", "gozkd_data_weight_per_namespace", "gozkd_budget_refusals_per_namespace"}

// expressions returns the expressions of deploy/monitoring, by the name of their alert or panel.
func expressions(t *testing.T) map[string][]string {
	t.Helper()
	all := make(map[string][]string)
	rules, err := os.ReadFile("../deploy/monitoring/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^ +- alert: (\w+)\n +expr: (.+)$`).FindAllStringSubmatch(string(rules), -1) {
		all[m[1]] = []string{m[2]}
	}
	if n := strings.Count(string(rules), "alert:"); n == 0 || n != len(all) {
		t.Errorf("%d of %d alerts are understood", len(all), n)
	}
	text, err := os.ReadFile("../deploy/monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			ID      int
			Type    string
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	for i, p := range dashboard.Panels {
		if p.ID != i+1 || (p.Type == "row") != (len(p.Targets) == 0) {
			t.Errorf("panel %d, %s: id %d, %d expressions", i+1, p.Title, p.ID, len(p.Targets))
		}
		for _, target := range p.Targets {
			all[p.Title] = append(all[p.Title], target.Expr)
		}
	}
	return all
}

// exprToken is a part of an expression of Prometheus: a text, a selector, a range, a word, a number
// or an operator.
var exprToken = regexp.MustCompile(`"[^"]*"|\{[^}]*\}|\[[0-9]+[smhd]\]|[a-zA-Z_][a-zA-Z0-9_]*|[0-9.]+|[-+*/()<>=!,]|\s+`)

// metricsIn returns the names of metrics in an expression, or an error if it is not well-formed.
func metricsIn(expr string) (names []string, err error) {
	words := []string{"and", "or", "unless", "on", "by", "without", "ignoring", "bool"}
	if rest := exprToken.ReplaceAllString(expr, ""); rest != "" {
		return nil, fmt.Errorf("%q is not understood", rest)
	}
	depth, labels := 0, 0 // labels: the depth of a list of labels
	tokens := slices.DeleteFunc(exprToken.FindAllString(expr, -1), func(s string) bool { return strings.TrimSpace(s) == "" })
	for i, s := range tokens {
		next := ""
		if i+1 < len(tokens) {
			next = tokens[i+1]
		}
		switch first := s[0]; {
		case s == "(":
			if depth++; i > 0 && slices.Contains(words[3:7], tokens[i-1]) {
				labels = depth
			}
		case s == ")":
			if depth == labels {
				labels = 0
			}
			if depth--; depth < 0 {
				return nil, fmt.Errorf("a ) too many")
			}
		case labels > 0, slices.Contains(words, s), next == "(", next == "by":
		case first == '_' || first >= 'a' && first <= 'z' || first >= 'A' && first <= 'Z':
			names = append(names, s)
		}
	}
	if depth != 0 {
		return nil, fmt.Errorf("%d ( are not closed", depth)
	}
	return names, nil
}

func TestMetricsIn(t *testing.T) {
	for expr, want := range map[string]string{
		`up{job="a"} == 0`: "up",
		`histogram_quantile(0.99, sum by (le, op) (rate(x_bucket{op!="ping"}[5m]))) > 1`: "x_bucket",
		`a > 0 and on (instance) b{c="d"} < 6`:                                           "a b",
		`rate(x[1m]`:                                                                     "error",
		`rate(x[1m]))`:                                                                   "error",
		`x ^ y`:                                                                          "error",
	} {
		names, err := metricsIn(expr)
		if got := strings.Join(names, " "); err == nil && got != want || (err != nil) != (want == "error") {
			t.Errorf("%s: %s %v, want %s", expr, got, err, want)
		}
	}
}

// described returns the names of a collector's metrics.
func described(c prometheus.Collector) map[string]bool {
	descs := make(chan *prometheus.Desc)
	go func() { // ends when all were received
		defer close(descs)
		c.Describe(descs)
	}()
	names := make(map[string]bool)
	name := regexp.MustCompile(`^Desc\{fqName: "(\w+)"`)
	for d := range descs {
		names[name.FindStringSubmatch(d.String())[1]] = true
	}
	return names
}

// Every value that the server's code adds to mntr is at /metrics, also those that need a
// configuration, a role or a fault. The texts are the exception.
func TestTable_HasAllThatTheCodeAdds(t *testing.T) {
	s, err := server.New(server.Config{})
	if err != nil {
		t.Fatal(err)
	}
	known := described(metrics.New(s.Facts()))
	texts := []string{"version", "server_state", "peer_state", "gozkd_data_status"}
	added := 0
	err = filepath.WalkDir("../server", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 2 {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains([]string{"Add", "AddKey", "AddPeer"}, method.Sel.Name) {
				return true
			}
			switch arg := call.Args[0].(type) {
			case *ast.BasicLit:
				if name, err := strconv.Unquote(arg.Value); err == nil && !known[name] && !slices.Contains(texts, name) {
					t.Errorf("%s: %s is not in the table", path, name)
				}
				added++
			case *ast.BinaryExpr: // the beginning of a name, such as that of the refused peers
				first := arg.X
				for sum, ok := first.(*ast.BinaryExpr); ok; sum, ok = first.(*ast.BinaryExpr) {
					first = sum.X
				}
				beginning := "?"
				if lit, ok := first.(*ast.BasicLit); ok {
					beginning = strings.Trim(lit.Value, `"`)
				}
				if !slices.ContainsFunc(slices.Collect(maps.Keys(known)), func(name string) bool { return strings.HasPrefix(name, beginning) }) {
					t.Errorf("%s: nothing that begins with %q is in the table", path, beginning)
				}
			}
			return true
		})
		return nil
	})
	if err != nil || added < 80 {
		t.Errorf("%d values are added: %v", added, err)
	}
}

// Every metric that our dashboard and alert rules name is there: on the leader, or on the others.
func TestDeploy_DashboardAndAlerts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		there := map[string]bool{"up": true, "ALERTS": true, "process_resident_memory_bytes": true, "process_cpu_seconds_total": true}
		servers := startThree(t)
		known := described(metrics.New(servers[0].Facts()))
		for _, name := range conditional {
			there[name] = known[name]
		}
		for _, s := range servers {
			work(t, s)
			for line := range exposed(t, metrics.New(s.Facts())) {
				there[strings.SplitN(line, "{", 2)[0]] = true
			}
		}
		for title, exprs := range expressions(t) {
			for _, expr := range exprs {
				names, err := metricsIn(expr)
				if err != nil || len(names) == 0 {
					t.Errorf("%s: %s: %v, metrics %q", title, expr, err, names)
				}
				for _, name := range names {
					if !there[name] {
						t.Errorf("%s: %s: there is no metric %s", title, expr, name)
					}
				}
			}
		}
	})
}

// The empty panels of ZooKeeper's public dashboard, except those of the JVM, show metrics that
// docs/reference/monitoring.md calls left out.
func TestDeploy_PublicDashboard(t *testing.T) {
	says := documented(t)
	for name := range strings.FieldsSeq(`startup_snap_load_time startup_txns_loaded
		learner_commit_received_count learner_handler_qp_size ack_latency quit_leading_due_to_disloyal_voter
		om_commit_process_time_ms om_proposal_process_time_ms prep_process_time prep_processor_request_queued
		outstanding_changes_queued close_session_prep_time sync_processor_request_queued
		write_commit_proc_req_queued write_commit_proc_issued
		concurrent_request_processing_in_commit_processor
		time_waiting_empty_pool_in_commit_processor_read_ms pending_session_queue_size
		local_write_committed_time_ms server_write_committed_time_ms write_batch_time_in_commit_processor
		reads_after_write_in_session_queue session_queues_drained request_commit_queued`) {
		if says[name] != "left out" {
			t.Errorf("%s: %q, want left out", name, says[name])
		}
	}
}

// The collector's configuration scrapes the port that is the default, and each pipeline has what it
// names.
func TestDeploy_Collector(t *testing.T) {
	text, err := os.ReadFile("../deploy/monitoring/otel-collector.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`targets: \["zk1:7000", `).Match(text) {
		t.Error("no targets at port 7000")
	}
	for _, m := range regexp.MustCompile(`(?m)^      (receivers|processors|exporters): \[(\w+)\]$`).FindAllStringSubmatch(string(text), -1) {
		if !regexp.MustCompile(`(?m)^` + m[1] + `:\n(  .*\n)*?  ` + m[2] + `:`).Match(text) {
			t.Errorf("pipeline: there is no %s in %s", m[2], m[1])
		}
	}
}
