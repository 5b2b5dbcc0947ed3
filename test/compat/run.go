package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
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
	must.Each(jobs, len(pairs), func(i int) {
		p := pairs[i]
		if ctx.Err() != nil {
			return
		}
		if err := installed[p.client.name]; err != nil {
			rows[i] = row{client: p.client.name, server: p.target.Name, err: err}
		} else {
			rows[i] = runTries(ctx, root, p, verbose)
		}
		fmt.Print(formatRow(rows[i], verbose))
	})
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
	r.err = must.Try(func() {
		dir := must.Get(os.MkdirTemp("", "gozkd-compat-keys-"))
		defer must.Finally(func() error { return os.RemoveAll(dir) })
		p, at := c.start(ctx, root, t, dir)
		defer must.Finally(p.Stop)
		r.server = p.Name()
		ctx, cancel := context.WithTimeout(ctx, clientTimeout)
		defer cancel()
		started := time.Now()
		err := must.Try(func() {
			var err error
			r.report, err = c.run(ctx, root, at)
			must.Do(err)
		})
		r.took = time.Since(started)
		r.report.Expect(c.otherwise)
		if !p.Running() {
			err = errors.Join(err, errors.New("the server ended while the client ran"))
		}
		if err != nil || !r.report.OK() {
			r.report.Log += "\nserver's log:\n" + p.Log()
		}
		must.Do(err)
	})
	return r
}

// place is where a client finds its server, and what it needs there.
type place struct {
	addr     string
	stores   server.Stores // of a client with TLS
	user     server.User   // of a client with DIGEST-MD5
	portFile string        // of an ensemble under faults
}

// start starts a server for the client, with files in dir.
func (c client) start(ctx context.Context, root string, t server.Kind, dir string) (p *server.Process, at place) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var opts server.Options
	switch {
	case c.faults:
		p = must.Get(server.StartTestkit(ctx, root))
		return p, place{portFile: p.PortFile()}
	case c.sasl:
		opts.Keys, at.user = server.WithUser(dir)
	case c.format != "":
		at.stores = server.MakeStores(ctx, dir)
		opts.TLS, opts.Format = &at.stores, c.format
	}
	p = must.Get(t.Start(ctx, opts))
	at.addr = cmp.Or(p.SecureAddr(), p.Addr())
	return p, at
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
