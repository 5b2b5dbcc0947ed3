package jepsenlite

import "context"

// A load is a kind of use of the ensemble, run by several workers at once.
type load struct {
	name    string
	workers int
	// prepare creates what the workers need below w.dir, which exists. nil: nothing.
	prepare func(w *worker) error
	// run works until ctx ends.
	run func(ctx context.Context, w *worker)
	// settle performs the final reads, when the ensemble is healed and all runs have ended. nil:
	// none.
	settle func(w *worker)
}

// loads returns all loads. Each has a znode of its name below the round's root.
func loads() []load {
	return []load{
		{name: loadRegister, workers: 5, run: runRegister},
		{name: loadSet, workers: 2, run: runSet, settle: settleSet},
		{name: loadSequence, workers: 2, run: runSequence},
		{name: loadBank, workers: 3, prepare: prepareBank, run: runBank, settle: settleBank},
		{name: loadQueue, workers: 2, run: runQueue, settle: settleQueue},
		{name: loadLock, workers: 3, run: runLock},
		{name: loadMember, workers: 2, run: runMember, settle: settleMember},
		{name: loadWatch, workers: 3, run: runWatch, settle: settleWatch},
		{name: loadRewatch, workers: 2, run: runRewatch},
		{name: loadPipeline, workers: 3, run: runPipeline},
	}
}
