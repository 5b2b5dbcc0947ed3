package alerts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/tsdb"
)

// rulesFile has the rules that users load.
const rulesFile = "../../deploy/monitoring/alerts.yaml"

// scrape is what Prometheus gets at a time: the answer of each instance, "" if there is none.
type scrape struct {
	at     time.Time
	bodies map[string]string
}

// firing is an alert that fires at a time.
type firing struct {
	at       time.Time
	name     string
	instance string
	summary  string
}

// load returns the rules as Prometheus reads them.
func load(t *testing.T) (list []rulefmt.Rule) {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(text, false, model.UTF8Validation)
	if len(errs) > 0 {
		t.Fatal(errors.Join(errs...))
	}
	for _, g := range groups.Groups {
		list = append(list, g.Rules...)
	}
	return list
}

// fire stores scrapes under a job, as Prometheus does, beside those of other programs, and returns
// the alerts that fire after each.
func fire(t *testing.T, job string, scrapes []scrape) (fired []firing) {
	t.Helper()
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	db, err := tsdb.Open(t.TempDir(), quiet, nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	store(t, db, job, scrapes)
	engine := promql.NewEngine(promql.EngineOpts{Logger: quiet, MaxSamples: 1e7, Timeout: time.Minute, LookbackDelta: 5 * time.Minute})
	query := rules.EngineQueryFunc(engine, db)
	for _, r := range load(t) {
		expr, err := parser.ParseExpr(r.Expr)
		if err != nil {
			t.Fatal(err)
		}
		rule := rules.NewAlertingRule(r.Alert, expr, time.Duration(r.For), time.Duration(r.KeepFiringFor), labels.FromMap(r.Labels),
			labels.FromMap(r.Annotations), labels.EmptyLabels(), "", true, quiet)
		for _, s := range scrapes {
			if _, err := rule.Eval(t.Context(), 0, s.at, query, nil, 0); err != nil {
				t.Fatalf("%s: %v", r.Alert, err)
			}
			for _, a := range rule.ActiveAlerts() {
				if a.State == rules.StateFiring {
					fired = append(fired, firing{s.at, r.Alert, a.Labels.Get("instance"), a.Annotations.Get("summary")})
				}
			}
		}
	}
	return fired
}

// foreign are series of other programs that the same Prometheus scrapes: a ZooKeeper that is not
// well, and something else that is down. No alert is about them.
func foreign(at int64, add func(v float64, pairs ...string)) {
	add(0, "__name__", "up", "job", "node", "instance", "10.0.9.9:9100")
	for name, v := range map[string]float64{
		"up": 0, "outstanding_requests": 9999, "synced_followers": 0, "quorum_size": 3, "open_file_descriptor_count": 100,
		"max_file_descriptor_count": 100, "digest_mismatches_count": float64(at), "leader_uptime": 1,
	} {
		add(v, "__name__", name, "job", "zookeeper", "instance", "10.0.8.8:7000")
	}
}

func store(t *testing.T, db *tsdb.DB, job string, scrapes []scrape) {
	t.Helper()
	before := make(map[string]map[string]labels.Labels) // by instance: the series of the last scrape
	for _, s := range scrapes {
		app, ms := db.Appender(context.Background()), s.at.UnixMilli()
		add := func(l labels.Labels, v float64) {
			if _, err := app.Append(0, l, ms, v); err != nil {
				t.Fatalf("%v: %v", l, err)
			}
		}
		foreign(ms, func(v float64, pairs ...string) { add(labels.FromStrings(pairs...), v) })
		for instance, body := range s.bodies {
			series := make(map[string]labels.Labels)
			p := textparse.NewPromParser([]byte(body), labels.NewSymbolTable(), false)
			for entry, err := p.Next(); !errors.Is(err, io.EOF); entry, err = p.Next() {
				if err != nil {
					t.Fatalf("%s: %v", instance, err)
				}
				if entry != textparse.EntrySeries {
					continue
				}
				_, _, v := p.Series()
				var own labels.Labels
				p.Labels(&own)
				l := labels.NewBuilder(own).Set("job", job).Set("instance", instance).Labels()
				series[l.String()] = l
				add(l, v)
			}
			for key, l := range before[instance] {
				if _, still := series[key]; !still {
					add(l, math.Float64frombits(value.StaleNaN))
				}
			}
			before[instance] = series
			up := 0.0
			if body != "" {
				up = 1
			}
			add(labels.FromStrings("__name__", "up", "job", job, "instance", instance), up)
		}
		if err := app.Commit(); err != nil {
			t.Fatal(err)
		}
	}
}

// want checks that the alerts fire after the fault, and that nothing fires before it or about other
// programs.
func want(t *testing.T, w *world, alerts []string) {
	t.Helper()
	for _, job := range []string{"kubernetes-pods", "gozkd"} { // the usual one for annotated pods; that of our collector's file
		var names []string
		for _, f := range fire(t, job, w.scrapes) {
			text := fmt.Sprintf("job %s: %s fires for %q at %v: %s", job, f.name, f.instance, f.at.Sub(w.began), f.summary)
			if f.at.Before(w.fault) {
				t.Error("before the fault:", text)
			}
			if f.instance != "" && w.ids[f.instance] == 0 {
				t.Error("of another program:", text)
			}
			if strings.Contains(f.summary, "<no value>") || strings.Contains(f.summary, "error") {
				t.Error("a summary that lacks something:", text)
			}
			names = append(names, f.name)
		}
		slices.Sort(names)
		names = slices.Compact(names)
		t.Logf("job %s: %d scrapes, firing: %v", job, len(w.scrapes), names)
		for _, a := range alerts {
			if !slices.Contains(names, a) {
				t.Errorf("job %s: %s does not fire", job, a)
			}
		}
	}
}
