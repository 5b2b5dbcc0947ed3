package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/lockload"
	"github.com/gozkd/gozkd/test/compat/server"
)

const (
	// longestPause bounds the time without a write beyond the stop and the start of the servers,
	// which a busy machine prolongs. The sessions have this timeout, too.
	longestPause = 10 * time.Second
	// patience bounds the waits of a migration, on a machine under load.
	patience = 2 * time.Minute
)

// live migrates a running ensemble while clients work on it, and kills its leader twice before
// that.
func (w *world) live(release string) {
	e := must.Get(w.kind(release).StartEnsemble(w.ctx, server.EnsembleOptions{Members: 3}))
	defer must.Finally(e.Stop)
	into := filepath.Join(w.work, "into")
	defer must.Finally(func() error { return w.taken.Stop() })
	var peers []string
	for _, m := range e.Members {
		peers = append(peers, m.PeerAddr())
	}
	m := w.migrate(strings.Join(peers, ","), into)
	defer must.Finally(m.Kill)
	load := lockload.Start(w.ctx, install.Root(w.ctx), e.Addrs(), []string{"go-zookeeper", "kazoo", "curator"})
	defer must.Finally(load.End)
	random := startLoad(w.ctx, e.Addrs()[0], release, w.rng, 2, 1000) // every kind of transaction, until that server is gone
	defer random.wait()
	must.Sleep(w.ctx, 2*time.Second)
	for range 2 {
		leader := must.Get(e.Leader(w.ctx))
		must.Do(leader.Kill())
		e.AwaitServing(w.ctx)
		leader.Start()
		e.AwaitServing(w.ctx)
		must.Sleep(w.ctx, time.Second)
	}
	w.awaitLeader(into)
	fmt.Printf("%-7s before the cut-over: %s\n", release, describe(load.Counts()))
	w.cutOver(release, e, into, m, load)
}

// cutOver ends the migration: ZooKeeper stops, as many servers start at its addresses, the first
// with the data, and the clients go on.
func (w *world) cutOver(release string, e *server.Ensemble, into string, m *server.Process, load *lockload.Load) {
	finish := []string{"migrate", "finish", into}
	for _, member := range e.Members {
		finish = append(finish, "--verify-tail", member.DataDir())
	}
	finished := make(chan error, 1)
	var report string
	// Ends with the command; its end is awaited below.
	go func() { finished <- must.Try(func() { report = w.run(finish...) }) }()
	leader := must.Get(e.Leader(w.ctx))
	began := time.Now()
	for _, member := range e.Members {
		if member != leader {
			must.Do(member.Process.Stop())
		}
	}
	if leader.Running() { // a leader without followers may have ended
		must.Do(leader.Process.Stop())
	}
	stopped := time.Now()
	must.Do(<-finished)
	must.Do(m.Wait())
	founded := time.Now()
	w.taken = must.Get(w.own.StartEnsemble(w.ctx, server.EnsembleOptions{
		Members: len(e.Members), Addrs: e.Addrs(), InTurn: true, Prepare: func(data string) error {
			if filepath.Base(filepath.Dir(data)) != "1" { // the id
				return nil
			}
			must.Do(os.RemoveAll(filepath.Join(into, "myid"))) // data has one
			return os.CopyFS(data, os.DirFS(into))
		},
	}))
	serving := time.Now()
	must.Do(load.AwaitWrites(w.ctx, patience))
	must.Sleep(w.ctx, 3*time.Second) // a client that lost its session says so
	seen := load.Counts()
	fmt.Print(report)
	fmt.Printf("%-7s %d servers: stopped in %d ms, founded after %d ms, started after %d ms; %s\n", release, len(e.Members),
		stopped.Sub(began).Milliseconds(), founded.Sub(stopped).Milliseconds(), serving.Sub(founded).Milliseconds(), describe(seen))
	for _, word := range []string{"proved", "equal up to"} {
		if !strings.Contains(report, word) {
			must.Failf("the report does not say %q", word)
		}
	}
	var dirs []string
	for _, member := range e.Members {
		dirs = append(dirs, member.DataDir())
	}
	verified := w.run(append([]string{"import", "--verify"}, dirs...)...)
	if want := digestIn(report); want == "" || digestIn(verified) != want {
		must.Failf("an import of the stopped servers has another digest:\n%s", verified)
	}
	switch allowed := serving.Sub(began) + longestPause; {
	case seen.Lost+seen.Failed > 0:
		must.Failf("the clients did not survive the cut-over")
	case seen.Pause > allowed:
		must.Failf("no client wrote for %v, and %v are allowed", seen.Pause, allowed)
	}
}

// digestIn returns the digest in a report.
func digestIn(report string) string {
	_, rest, _ := strings.Cut(report, "\ndigest      ")
	digest, _, _ := strings.Cut(rest, ";")
	return digest
}

func describe(c lockload.Counts) string {
	return fmt.Sprintf("%d writes under locks, %d repeated, %d sessions lost, %d failed, longest pause %d ms", c.Done, c.Repeated, c.Lost, c.Failed, c.Pause.Milliseconds())
}

// migrate starts `gozkd migrate`.
func (w *world) migrate(from, into string) *server.Process {
	cmd := exec.Command(w.own.Binary(), "migrate", "--from", from, "--into", into)
	return server.Start("gozkd migrate", cmd, filepath.Join(w.work, "migrate.log"))
}

// awaitLeader waits until the migration into a directory follows a leader and lags by little.
func (w *world) awaitLeader(into string) {
	must.Await(w.ctx, patience, "a leader is followed", func() error {
		status := w.run("migrate", "status", into)
		if !strings.Contains(status, "number ") {
			return errors.New(status)
		}
		fmt.Print(status)
		return nil
	})
}
