package zktest

import (
	"errors"

	"github.com/gozkd/gozkd/internal/cluster"
	"github.com/gozkd/gozkd/internal/parallel"
)

// Stop stops all running members at the same time.
func (e *Ensemble) Stop() {
	e.t.Helper()
	members := e.cluster.Members()
	e.must(errors.Join(parallel.Each(len(members), len(members), func(i int) error {
		if members[i].State() != cluster.Running {
			return nil
		}
		return members[i].Stop()
	})...))
}

// Start starts all members that are down and returns when they serve.
func (e *Ensemble) Start() {
	e.t.Helper()
	for _, m := range e.Members() {
		if m.m.State() == cluster.Down {
			m.Start()
		}
	}
}
