package consensus

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/consensus/internal/turn"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
)

// driven is a standalone member on a disk with syncs that sync decides about.
type driven struct {
	*Node
	list *list
	done chan error
	sync func() error // nil: it succeeds
}

func newDriven(t *testing.T, machine func(*list) StateMachine) *driven {
	d := &driven{list: &list{}, done: make(chan error, 1)}
	cfg := onMem(t, vfstest.NewFaulty(vfstest.NewMem(), func(op vfstest.Op) error {
		if op.Kind != vfstest.OpSync || d.sync == nil {
			return nil
		}
		return d.sync()
	}))
	cfg.StateMachine = d.list
	if machine != nil {
		cfg.StateMachine = machine(d.list)
	}
	n, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	d.Node = n
	go func() { d.done <- n.Run(t.Context()) }() // ends with t.Context, awaited by wait or the bubble
	<-n.Ready()
	synctest.Wait()
	return d
}

// A lone request is on disk and applied when Drive returns: no other goroutine was needed.
func TestDrive_LoneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDriven(t, nil)
		for i := range 100 {
			applied := false // no lock: it is set on this goroutine
			d.Enqueue([]byte("x"), func() { applied = true })
			if d.Drive(true); !applied {
				t.Fatalf("request %d is not applied when Drive returns", i)
			}
		}
	})
}

// A goroutine that must not wait for the disk leaves the turn to Run.
func TestDrive_NotOnThisDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDriven(t, nil)
		disk, applied := newGate(t), make(chan struct{})
		d.sync = func() error { disk.await(); return nil }
		d.Enqueue([]byte("x"), func() { close(applied) })
		begin := time.Now()
		d.Drive(false) // returns although the disk hangs
		close(disk.open)
		<-applied
		if waited := time.Since(begin); waited > 0 {
			t.Errorf("Run began its turn after %v", waited)
		}
	})
}

// A server without a disk has nothing to wait for.
func TestDrive_InMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, err := Open(Config{StateMachine: &list{}})
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = n.Run(t.Context()) }() // ends with t.Context, awaited by the bubble
		<-n.Ready()
		synctest.Wait()
		applied := false // no lock: it is set on this goroutine
		n.Enqueue([]byte("x"), func() { applied = true })
		if n.Drive(false); !applied {
			t.Error("the request is not applied when Drive returns")
		}
	})
}

// blocking is a state machine that waits in Apply.
type blocking struct {
	*list
	gate gate
}

func (b blocking) Apply(batches []Batch) {
	if len(batches) > 0 && len(batches[0].Requests) > 0 {
		b.gate.await()
	}
	b.list.Apply(batches)
}

// gate is closed when waiting ends; a test that never gets to close it fails after an hour.
type gate struct {
	t    *testing.T
	open chan struct{}
}

func newGate(t *testing.T) gate { return gate{t, make(chan struct{})} }

func (g gate) await() {
	select {
	case <-g.open:
	case <-time.After(time.Hour):
		g.t.Error("Drive waits")
	}
}

// With a crowd, the goroutines that bring the requests do not apply them, and once the crowd is
// gone they do again.
func TestDrive_LeavesACrowdToRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := newGate(t)
		d := newDriven(t, func(l *list) StateMachine { return blocking{l, gate} })
		for range 2 {
			d.Enqueue([]byte("x"), nil)
		}
		d.Drive(true) // returns although Apply waits
		close(gate.open)
		for i := range 2 * crowdMemory {
			done := make(chan struct{})
			d.Propose([]byte("x"), func() { close(done) })
			<-done
			if synctest.Wait(); i == 4 && d.turns.crowd <= 0 {
				t.Error("the crowd is forgotten at once")
			}
		}
		synctest.Wait()
		applied := false
		d.Enqueue([]byte("x"), func() { applied = true })
		if d.Drive(true); !applied {
			t.Error("a lone request after the crowd is left to Run")
		}
	})
}

// A request that comes while another goroutine has the loop waits neither for another request nor
// for a tick.
func TestDrive_ForgetsNoRequest(t *testing.T) {
	for name, drive := range map[string]func(d *driven){
		"during a driven turn": func(d *driven) { d.Enqueue([]byte("first"), nil); d.Drive(true) },
		"during a turn of Run": func(d *driven) { d.Propose([]byte("first"), nil) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDriven(t, nil)
				disk, applied, first := make(chan struct{}), make(chan struct{}), true
				d.sync = func() error {
					if first {
						first = false
						go func() { // ends by itself
							d.Enqueue([]byte("second"), func() { close(applied) })
							d.Drive(true) // returns at once, because the loop is taken
							close(disk)
						}()
					}
					<-disk
					return nil
				}
				began := time.Now()
				drive(d)
				<-applied
				if took := time.Since(began); took != 0 {
					t.Errorf("the second request takes %v", took)
				}
			})
		})
	}
}

// C5: if the disk fails in a driven turn, Run ends with its error, and nothing more is applied.
func TestC5_DrivenTurnFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, broken := newDriven(t, nil), errors.New("broken")
		d.sync = func() error { return broken }
		for range 2 {
			d.Enqueue([]byte("x"), func() { t.Error("applied") })
			d.Drive(true)
		}
		if err := <-d.done; !errors.Is(err, broken) {
			t.Errorf("Run returns %v", err)
		}
	})
}

// C5: after a turn that failed nobody takes another, also if nothing stands in its way: Run ends
// with the error of the first.
func TestC5_NoTurnAfterAFailedOne(t *testing.T) {
	broken := errors.New("broken")
	for name, fail := range map[string]nodeCall{
		"an event": func(*Node) error { return broken },
		"a checkpoint that was received": func(n *Node) error {
			n.inbox.logResults.add(logResult{installed: &turn.Received{Meta: n.core.Meta(), Install: func() error { return broken }}})
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDriven(t, nil)
				d.inbox.events.add(fail)
				d.Drive(true)
				d.Enqueue([]byte("x"), func() { t.Error("applied") })
				d.Drive(true)
				select {
				case err := <-d.done:
					if !errors.Is(err, broken) {
						t.Errorf("Run returns %v", err)
					}
				case <-time.After(time.Minute):
					t.Error("Run goes on")
				}
			})
		})
	}
}

// Before Run begins and after it has ended Drive does nothing.
func TestDrive_WithoutRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, err := Open(Config{StateMachine: &list{}})
		if err != nil {
			t.Fatal(err)
		}
		var applied atomic.Int32
		n.Enqueue([]byte("x"), func() { applied.Add(1) })
		n.Drive(true)
		if applied.Load() != 0 {
			t.Error("a request is applied before Run")
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- n.Run(ctx) }() // ends with ctx, awaited below
		synctest.Wait()
		if applied.Load() != 1 {
			t.Error("a request that came before Run is not applied by Run")
		}
		cancel()
		if err := <-done; !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		n.Enqueue([]byte("y"), func() { applied.Add(1) })
		n.Drive(true)
		if applied.Load() != 1 {
			t.Error("a request is applied after Run")
		}
	})
}

// The messages that a member gets, and the results of its log, are handled by the goroutines that
// bring them: Run is woken for nothing but ticks.
func TestDrive_EnsembleNeedsNoWakeUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		b := newBubbled(t, time.Millisecond, 5*time.Second, func(i int, cfg *Config) {
			cfg.Dir = dir + "/" + string(rune('a'+i))
		})
		defer b.stop()
		follower := b.members[(b.leader()+1)%3]
		for range 10 {
			done := make(chan struct{})
			follower.Enqueue([]byte("x"), func() { close(done) })
			follower.Drive(false)
			<-done
		}
		synctest.Wait()
		for i, n := range b.members {
			if woken := n.wakeups.yielder.turns; woken > 10 {
				t.Errorf("Run of member %d was woken %d times", i+1, woken)
			}
		}
	})
}
