package zktest

// Stop stops all running members at the same time.
func (e *Ensemble) Stop() {
	e.t.Helper()
	e.must(e.cluster.Stop())
}

// Start starts all members that are down and returns when they serve.
func (e *Ensemble) Start() {
	e.t.Helper()
	e.do(e.cluster.Start)
}
