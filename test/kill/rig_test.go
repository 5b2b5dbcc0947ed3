package kill

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
)

// A rig is a server, its clients, and what must hold between them.
type rig struct {
	*server
	ledger   *ledger
	record   *record
	rng      *rand.Rand
	workers  []*worker
	bankers  []*banker
	visitors []*visitor
}

// newRig starts the server and makes the clients and their znodes.
func newRig(t *testing.T, s *server, seed uint64, nWorkers, nBankers int) *rig {
	t.Helper()
	r := &rig{server: s, ledger: newLedger(), record: newRecord(), rng: rand.New(rand.NewPCG(seed, 0))}
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	c, took, err := s.ready(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("first start to the first answer: %v", took)
	paths := []string{"/own", "/seq", "/hold", "/never", "/brief", "/bank", "/receipts"}
	for i := range sharedPaths {
		paths = append(paths, sharedPath(i))
		r.ledger.shared[sharedPath(i)] = &register{acked: map[int32]string{}, open: map[string]bool{}}
	}
	for _, p := range paths {
		must(t, c.create(p, ""))
	}
	for i := range bankAccounts {
		must(t, c.create(bankAccount(i), strconv.Itoa(bankTotal/bankAccounts)))
	}
	for i := range nWorkers {
		w := &worker{addr: s.addr, name: fmt.Sprintf("w%d", i), ledger: r.ledger, rng: r.branch()}
		must(t, w.setUp(t.Context()))
		r.workers = append(r.workers, w)
	}
	for i := range nBankers {
		r.bankers = append(r.bankers, newBanker(t, s.addr, fmt.Sprintf("b%d", i), r.ledger, r.branch()))
	}
	must(t, c.end())
	return r
}

// branch returns a source of its own for one client.
func (r *rig) branch() *rand.Rand { return rand.New(rand.NewPCG(r.rng.Uint64(), r.rng.Uint64())) }

// load starts all clients. After the server was killed, lost waits for the clients that end with
// their connection; rest waits for the others, after the server is up again.
func (r *rig) load(t *testing.T) (lost, rest func()) {
	v := &visitor{name: fmt.Sprintf("v%d", len(r.visitors)), polite: r.rng.IntN(2) == 0}
	r.visitors = append(r.visitors, v)
	var raw, banks sync.WaitGroup
	raw.Go(func() { v.visit(t.Context(), r.addr, r.ledger) }) // ends with the server, awaited by lost
	for _, w := range r.workers {
		raw.Go(func() { w.run(t.Context(), 0) }) // ends with the server, awaited by lost
	}
	for _, b := range r.bankers {
		b.resting.Store(false)
		banks.Go(b.run) // ended and awaited by rest
	}
	return raw.Wait, func() {
		for _, b := range r.bankers {
			b.resting.Store(true)
		}
		banks.Wait()
	}
}

// check compares everything with the answers that the clients received, in its own session. No
// request may be in flight.
func (r *rig) check(t *testing.T) {
	t.Helper()
	c, err := open(t.Context(), r.addr, newSession(workerTimeout))
	must(t, err)
	must(t, r.record.check(t.Context(), c, r.ledger, r.workers))
	_, err = checkVisitors(c, r.ledger, r.visitors)
	must(t, err)
	must(t, checkBank(c, r.ledger, r.bankers))
	must(t, c.end())
}

// verdict fails the test if a promise was broken.
func (r *rig) verdict(t *testing.T) {
	t.Helper()
	for i, f := range r.ledger.faults {
		if i == 20 {
			t.Errorf("... and %d more", len(r.ledger.faults)-i)
			break
		}
		t.Error(f)
	}
	if t.Failed() {
		t.FailNow()
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
