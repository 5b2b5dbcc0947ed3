package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/lockload"
	"github.com/gozkd/gozkd/test/compat/server"
)

const (
	// startLimit bounds how long a member may take to be in step again, on a machine under load.
	startLimit = 2 * time.Minute
	holdKey    = "gozkd.maxFeatureLevel"
)

// roll moves an ensemble from version to version.
type roll struct {
	versions versions
	rest     time.Duration
	ensemble *server.Ensemble
	load     *lockload.Load
	results  []result
}

// result holds the observations of the clients during a stage.
type result struct {
	stage string
	took  time.Duration
	seen  lockload.Counts
}

// begin starts the ensemble as the old version.
func (r *roll) begin(ctx context.Context) {
	keys := server.Defaults()
	keys[holdKey] = fmt.Sprint(r.versions.nextLevel - 1)
	keys["snapCount"] = "500" // so that each version starts with checkpoints of the other
	from := server.KindNamed(ctx, server.Gozkd, r.versions.from, "")
	r.ensemble = must.Get(from.StartEnsemble(ctx, server.EnsembleOptions{Members: 3, Keys: keys}))
}

// stages runs everything in order.
func (r *roll) stages(ctx context.Context) {
	v := &r.versions
	for _, s := range []struct {
		name string
		act  func(ctx context.Context)
	}{
		{"nothing is restarted", func(ctx context.Context) { r.levelIs(ctx, v.nextLevel-1) }},
		{"upgrade", r.to(v.this, keepDisks)},
		{"downgrade", r.to(v.from, keepDisks)},
		{"upgrade, one with an emptied disk", r.to(v.this, emptyOne)},
		{"downgrade, one with an emptied disk", r.to(v.from, emptyOne)},
		{"upgrade to the next level, held back", r.to(v.next, keepDisks)},
		{"the level is raised", r.raise},
		{"older versions are refused", r.refused},
	} {
		began := time.Now()
		r.load.Counts() // forget what was between the stages
		err := must.Try(func() {
			s.act(ctx)
			must.Sleep(ctx, r.rest)
		})
		r.results = append(r.results, result{s.name, time.Since(began), r.load.Counts()})
		if err != nil {
			must.Failf("%s: %w", s.name, err)
		}
	}
}

const (
	keepDisks = false
	emptyOne  = true
)

// to restarts all members as another version, the leader last, and checks that the level is still
// that of this tree. With empty, the data of the first of them is deleted: it receives a checkpoint
// of the leader, which is of the other version.
func (r *roll) to(binary string, empty bool) func(ctx context.Context) {
	return func(ctx context.Context) {
		leader := must.Get(r.ensemble.Leader(ctx))
		for i := range r.ensemble.Members {
			m := r.ensemble.Members[(leader.ID+i)%len(r.ensemble.Members)]
			must.Do(m.Stop())
			if empty && i == 0 {
				emptyDisk(m)
			}
			r.start(ctx, m, binary)
			must.Sleep(ctx, r.rest)
		}
		r.levelIs(ctx, r.versions.nextLevel-1)
	}
}

// emptyDisk deletes the data of a stopped member.
func emptyDisk(m *server.Member) {
	data := filepath.Join(filepath.Dir(m.ConfigFile()), "data")
	must.Do(errors.Join(os.RemoveAll(filepath.Join(data, "wal")), os.Remove(filepath.Join(data, "checkpoint.db"))))
}

// start starts a member and waits until it is in step.
func (r *roll) start(ctx context.Context, m *server.Member, binary string) {
	m.Become(binary)
	m.Start()
	must.Await(ctx, startLimit, fmt.Sprintf("member %d is in step", m.ID), func() error {
		return must.Try(func() {
			r.ensemble.AwaitServing(ctx)
			n := must.Get(server.Monitored(ctx, must.Get(r.ensemble.Leader(ctx)).Addr()))["zk_synced_followers"]
			if n != fmt.Sprint(len(r.ensemble.Members)-1) {
				must.Failf("%s members are in step", n)
			}
		})
	})
}

// raise removes the key that holds the level back, while the servers run.
func (r *roll) raise(ctx context.Context) {
	for _, m := range r.ensemble.Members {
		text := string(must.Get(os.ReadFile(m.ConfigFile())))
		next := strings.ReplaceAll(text, fmt.Sprintf("%s=%d\n", holdKey, r.versions.nextLevel-1), "")
		if next == text {
			must.Failf("%s does not contain %s", m.ConfigFile(), holdKey)
		}
		must.Do(os.WriteFile(m.ConfigFile(), []byte(next), 0o644))
		must.Do(m.Signal(syscall.SIGHUP)) // it reads its configuration again
	}
	r.levelIs(ctx, r.versions.nextLevel)
}

// refused starts a member as the older versions, which must end. With an emptied disk they must
// find out that the others refuse them. Each time the member is then started as its own version
// again.
func (r *roll) refused(ctx context.Context) {
	m := r.ensemble.Members[0]
	for _, binary := range []string{r.versions.this, r.versions.from} {
		must.Do(m.Stop())
		m.Become(binary)
		before := len(m.Log())
		m.Start()
		select {
		case <-m.Done():
		case <-time.After(startLimit):
			must.Do(errors.Join(fmt.Errorf("an older version serves data of level %d", r.versions.nextLevel), m.Kill()))
		}
		last := ""
		for line := range strings.Lines(m.Log()[before:]) {
			last = line
		}
		fmt.Printf("an older version says: %s", last)
		emptyDisk(m)
		before = len(m.Log())
		m.Start()
		reason := fmt.Sprintf("start member %d with a version of gozkd that supports level %d", m.ID, r.versions.nextLevel)
		must.Await(ctx, startLimit, "an older version without data knows why it is refused", func() error {
			if !strings.Contains(m.Log()[before:], reason) {
				return errors.New("its log does not say " + reason)
			}
			return nil
		})
		must.Do(m.Stop())
		r.start(ctx, m, r.versions.next)
	}
	r.levelIs(ctx, r.versions.nextLevel)
}

// levelIs waits until all members have this level.
func (r *roll) levelIs(ctx context.Context, want int) {
	must.Await(ctx, startLimit, fmt.Sprintf("the level is %d", want), func() error {
		return must.Try(func() {
			for _, m := range r.ensemble.Members {
				level := must.Get(server.Monitored(ctx, m.Addr()))["zk_gozkd_feature_level"]
				if level != fmt.Sprint(want) {
					must.Failf("member %d has level %s", m.ID, level)
				}
			}
		})
	})
}

// table returns a line per stage.
func (r *roll) table() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STAGE\tSECONDS\tDONE\tREPEATED\tLONGEST PAUSE ms\tSESSIONS LOST\tERRORS")
	for _, s := range r.results {
		fmt.Fprintf(w, "%s\t%.0f\t%d\t%d\t%d\t%d\t%d\n", s.stage, s.took.Seconds(), s.seen.Done, s.seen.Repeated, s.seen.Pause.Milliseconds(), s.seen.Lost, s.seen.Failed)
	}
	_ = w.Flush() // to memory
	return b.String()
}
