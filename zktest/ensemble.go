package zktest

import (
	"errors"
	"sync"

	"github.com/gozkd/gozkd/internal/cluster"
)

// Stop stops all running members at the same time.
func (e *Ensemble) Stop() {
	e.t.Helper()
	members := e.cluster.Members()
	errs := make([]error, len(members))
	var wg sync.WaitGroup
	for i, m := range members {
		if m.State() == cluster.Running {
			wg.Go(func() { errs[i] = m.Stop() })
		}
	}
	wg.Wait()
	e.must(errors.Join(errs...))
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
