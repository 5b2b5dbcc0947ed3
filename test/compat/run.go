package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/cases"
	"github.com/gozkd/gozkd/test/compat/server"
)

// startTimeout bounds the start of a server, installation included.
const startTimeout = 10 * time.Minute

// clientTimeout bounds a client's script.
const clientTimeout = 3 * time.Minute

// row is a line of the table.
type row struct {
	client, server string
	report         cases.Report
	err            error // why there is no complete report
	took           time.Duration
	try            int  // 0: the first one
	again          bool // another try follows
}

func (r row) ok() bool { return r.err == nil && r.report.OK() }

// pair is a client and a server to run it on.
type pair struct {
	client client
	target server.Kind
}

// runAll installs the clients, runs each on every server that it applies to, jobs at once, and
// returns the rows of the table. Each pair has a server process of its own, so that clients do not
// affect each other.
func runAll(ctx context.Context, root string, targets []server.Kind, list []client, jobs int, verbose bool) []row {
	installed := make(map[string]error)
	for _, c := range list {
		installed[c.name] = must.Try(func() {
			ctx, cancel := context.WithTimeout(ctx, startTimeout)
			defer cancel()
			c.install(ctx, root)
		})
	}
	pairs := plan(targets, list)
	rows := make([]row, len(pairs))
	var next atomic.Int32
	work := func() {
		for i := int(next.Add(1)) - 1; i < len(pairs) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
			p := pairs[i]
			if err := installed[p.client.name]; err != nil {
				rows[i] = row{client: p.client.name, server: p.target.Name, err: err}
			} else {
				rows[i] = runTries(ctx, root, p, verbose)
			}
			fmt.Print(formatRow(rows[i], verbose))
		}
	}
	must.All(slices.Repeat([]func(){work}, jobs)...)
	return slices.DeleteFunc(rows, func(r row) bool { return r.client == "" }) // those left at an interrupt
}

// plan returns the pairs.
func plan(targets []server.Kind, list []client) (pairs []pair) {
	for _, t := range targets {
		for _, c := range list {
			if c.runsOn(t) {
				pairs = append(pairs, pair{c, t})
			}
		}
	}
	return pairs
}

// tries returns how often a client runs at most until it passes. On ZooKeeper the run only checks
// the script, and a slow election there says nothing about it. A failure on gozkd stands.
func tries(t server.Kind) int {
	if t.Name == server.Gozkd {
		return 1
	}
	return 3
}

// runTries runs a pair until it passes, as often as its server permits.
func runTries(ctx context.Context, root string, p pair, verbose bool) row {
	r := runPair(ctx, root, p.target, p.client)
	for try := 2; try <= tries(p.target) && !r.ok() && ctx.Err() == nil; try++ {
		r.again = true
		fmt.Print(formatRow(r, verbose))
		r = runPair(ctx, root, p.target, p.client)
		r.try = try
	}
	return r
}

func runPair(ctx context.Context, root string, t server.Kind, c client) (r row) {
	r = row{client: c.name, server: t.Name}
	startCtx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	start := func(ctx context.Context) (*server.Process, error) { return t.Start(ctx, server.Options{}) }
	run := func(ctx context.Context, p *server.Process) (cases.Report, error) { return c.run(ctx, root, p.Addr()) }
	switch {
	case c.faults != nil:
		start = func(ctx context.Context) (*server.Process, error) { return server.StartTestkit(ctx, root) }
		run = func(ctx context.Context, p *server.Process) (cases.Report, error) {
			return c.faults(ctx, root, p.PortFile())
		}
	case c.secure != nil || c.sasl != nil:
		dir, err := os.MkdirTemp("", "gozkd-compat-keys-")
		if err != nil {
			r.err = err
			return r
		}
		defer func() { r.err = errors.Join(r.err, os.RemoveAll(dir)) }()
		if start, run, err = c.withIdentity(startCtx, root, t, dir); err != nil {
			r.err = err
			return r
		}
	}
	p, err := start(startCtx)
	if err != nil {
		r.err = err
		return r
	}
	r.server = p.Name()
	defer func() {
		if !r.ok() {
			r.report.Log += "\nserver's log:\n" + p.Log()
		}
		r.err = errors.Join(r.err, p.Stop())
	}()
	clientCtx, cancelClient := context.WithTimeout(ctx, clientTimeout)
	defer cancelClient()
	started := time.Now()
	r.err = must.Try(func() {
		var err error
		r.report, err = run(clientCtx, p)
		must.Do(err)
	})
	r.took = time.Since(started)
	r.report.Expect(c.otherwise)
	select {
	case <-p.Done():
		r.err = errors.Join(r.err, errors.New("the server ended while the client ran"))
	default:
	}
	return r
}

// withIdentity returns how to start a server for a client with TLS or SASL, and how to run the
// client. The keys are in dir.
func (c client) withIdentity(ctx context.Context, root string, t server.Kind, dir string) (
	start func(context.Context) (*server.Process, error), run func(context.Context, *server.Process) (cases.Report, error), err error,
) {
	if c.sasl != nil {
		keys, user, err := server.WithUser(dir)
		start = func(ctx context.Context) (*server.Process, error) { return t.Start(ctx, server.Options{Keys: keys}) }
		run = func(ctx context.Context, p *server.Process) (cases.Report, error) {
			return c.sasl(ctx, root, p.Addr(), user)
		}
		return start, run, err
	}
	stores, err := server.MakeStores(ctx, dir)
	start = func(ctx context.Context) (*server.Process, error) {
		return t.Start(ctx, server.Options{TLS: &stores, Format: c.format})
	}
	run = func(ctx context.Context, p *server.Process) (cases.Report, error) {
		return c.secure(ctx, root, p.SecureAddr(), stores)
	}
	return start, run, err
}

// script runs a client that is a separate program and parses its lines. A program that fails
// without a failed case is an error, and so is one that ends otherwise than with the status 1.
func script(ctx context.Context, name string, args ...string) (cases.Report, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	runErr := cmd.Run()
	report, err := cases.Parse(&out)
	report.Log = errOut.String()
	if runErr != nil && (err != nil || report.OK() || cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 1) {
		err = errors.Join(fmt.Errorf("%s: %w", name, runErr), err)
	}
	return report, err
}

// formatRow describes a client's result on a server: failures with their reasons, and the logs
// unless another try follows.
func formatRow(r row, verbose bool) string {
	var w strings.Builder
	failed := "FAIL"
	if r.again {
		failed = "to be tried again:"
	}
	fmt.Fprintf(&w, "%s on %s: %d of %d passed in %s\n",
		r.client, r.server, r.report.Passed(), len(r.report.Results), r.took.Round(10*time.Millisecond))
	for _, res := range r.report.Results {
		switch {
		case res.Err != nil:
			fmt.Fprintf(&w, "  %s %s: %v\n", failed, res.Name, res.Err)
		case verbose:
			fmt.Fprintf(&w, "  ok   %s\n", res.Name)
		}
	}
	if r.ok() {
		return w.String()
	}
	if r.err != nil {
		fmt.Fprintf(&w, "  error: %v\n", r.err)
	}
	if log := strings.TrimSpace(r.report.Log); log != "" && !r.again {
		fmt.Fprintf(&w, "  log:\n    %s\n", strings.ReplaceAll(tail(log), "\n", "\n    "))
	}
	return w.String()
}

func tail(log string) string {
	const maxBytes = 4 << 10
	if len(log) <= maxBytes {
		return log
	}
	return "(cut) ..." + log[len(log)-maxBytes:]
}

// formatTable returns a line per client and server, as Markdown that is readable as text.
func formatTable(rows []row) string {
	var w strings.Builder
	t := tabwriter.NewWriter(&w, 0, 0, 1, ' ', tabwriter.Debug)
	fmt.Fprint(t, "| client\t version\t server\t cases\t passed\t\n| ---\t ---\t ---\t ---\t ---\t\n")
	for _, r := range rows {
		passed := strconv.Itoa(r.report.Passed())
		if r.try > 1 {
			passed += fmt.Sprintf(" (at try %d)", r.try)
		}
		if r.err != nil {
			passed += " (did not finish)"
		}
		fmt.Fprintf(t, "| %s\t %s\t %s\t %d\t %s\t\n", r.client, r.report.Version, r.server, len(r.report.Results), passed)
	}
	_ = t.Flush() // to memory
	return w.String()
}
