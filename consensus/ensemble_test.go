package consensus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/tcpport"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

// ensemble is a few nodes in this process, on loopback, with data on disk or in memory.
type ensemble struct {
	t     *testing.T
	nodes []*ensembleNode
	seq   atomic.Int64
	// budget is the number of bytes after which each dialled connection breaks; 0: never.
	budget atomic.Int64
}

type ensembleNode struct {
	e      *ensemble
	id     uint64
	dir    string
	memory *Memory // nil: a node in memory loses its state when it ends
	port   *tcpport.Port
	n      *Node
	list   *list
	cancel context.CancelFunc
	done   chan error
}

func newEnsemble(t *testing.T, n int, onDisk bool) *ensemble {
	e := &ensemble{t: t}
	for i := range n {
		port, err := tcpport.Reserve("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(port.Release)
		m := &ensembleNode{e: e, id: uint64(i + 1), port: port}
		if onDisk {
			m.dir = t.TempDir()
		}
		e.nodes = append(e.nodes, m)
		t.Cleanup(m.stop)
	}
	for _, m := range e.nodes {
		m.start()
	}
	e.whole()
	return e
}

// whole returns when all members vote. A member that has not formed the ensemble with the others is
// let in by them, which needs a quorum: until then no member may be stopped.
func (e *ensemble) whole() {
	e.t.Helper()
	e.eventually("all members take part", func() bool {
		for _, m := range e.nodes {
			if s := m.n.Status(); s.Fresh || !s.Voter || !s.Current || s.Joining || len(s.Voters) != len(e.nodes) {
				return false
			}
		}
		return true
	})
}

func (m *ensembleNode) start() {
	e := m.e
	e.t.Helper()
	m.list = &list{}
	var voters []uint64
	addresses := map[uint64]string{}
	for _, o := range e.nodes {
		voters = append(voters, o.id)
		addresses[o.id] = o.port.Address()
	}
	l, err := m.port.Listen()
	if err != nil {
		e.t.Fatal(err)
	}
	m.n, err = Open(Config{
		ID: m.id, Dir: m.dir, Memory: m.memory, Voters: voters, StateMachine: m.list, PeerListener: l, PeerDial: e.dial, Tick: 10 * time.Millisecond,
		CheckpointRequests: 2000, SegmentBytes: 256 << 10,
	})
	if err != nil {
		e.t.Fatal(err)
	}
	m.n.SetMembers(addresses, nil)
	m.n.SetTarget(Target{Voters: voters})
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel, m.done = cancel, make(chan error, 1)
	go func() { m.done <- m.n.Run(ctx) }()
}

func (m *ensembleNode) stop() {
	if m.cancel == nil {
		return
	}
	m.cancel()
	if err := <-m.done; !errors.Is(err, ErrClosed) {
		m.e.t.Errorf("member %d: %v", m.id, err)
	}
	m.cancel = nil
	m.port.Hold()
}

// dial breaks connections that have used up the budget.
func (e *ensemble) dial(ctx context.Context, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &limited{Conn: c, e: e}, nil
}

type limited struct {
	net.Conn
	e       *ensemble
	mu      sync.Mutex
	written int64
}

func (l *limited) Write(b []byte) (int, error) {
	l.mu.Lock()
	l.written += int64(len(b))
	broken := l.e.budget.Load() > 0 && l.written > l.e.budget.Load()
	l.mu.Unlock()
	if broken {
		_ = l.Close()
		return 0, syscall.ECONNRESET
	}
	return l.Conn.Write(b)
}

// put proposes n requests of that many bytes at a member, and returns when all are applied there.
func (e *ensemble) put(m *ensembleNode, n, bytes int) {
	e.t.Helper()
	var wg sync.WaitGroup
	wg.Add(n)
	for range n {
		m.n.Propose(fmt.Appendf(nil, "%d/%0*d", m.id, bytes, e.seq.Add(1)), wg.Done)
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-watchdog.After(e.t, 20*time.Second):
		e.t.Fatalf("member %d: requests are not applied: %+v", m.id, m.n.Status())
	}
}

// converge returns when all members have applied the same requests, each exactly once.
func (e *ensemble) converge() {
	e.t.Helper()
	want := int(e.seq.Load())
	e.eventually("all members have all requests", func() bool {
		for _, m := range e.nodes {
			if got := m.list.all(); len(got) != want || !slices.Equal(got, e.nodes[0].list.all()) {
				return false
			}
		}
		return true
	})
	seen := map[string]bool{}
	for _, item := range e.nodes[0].list.all() {
		if seen[item] {
			e.t.Fatalf("C2: %s is applied twice", item)
		}
		seen[item] = true
	}
}

func (e *ensemble) eventually(what string, ok func() bool) {
	e.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := watchdog.After(e.t, 20*time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			for _, m := range e.nodes {
				e.t.Logf("member %d: %d items, %+v", m.id, len(m.list.all()), m.n.Status())
			}
			e.t.Fatal("timed out: " + what)
		}
	}
}

// leader returns a member that leads and has applied the first entry of its term.
func (e *ensemble) leader() *ensembleNode {
	e.t.Helper()
	var leader *ensembleNode
	e.eventually("somebody leads", func() bool {
		for _, m := range e.nodes {
			if m.cancel == nil {
				continue
			}
			if s := m.n.Status(); s.Leading && s.Current {
				leader = m
				return true
			}
		}
		return false
	})
	return leader
}

// reign returns the term of a member that leads.
func (e *ensemble) reign() (term uint64) {
	e.t.Helper()
	e.eventually("somebody leads", func() bool {
		for _, m := range e.nodes {
			if s := m.n.Status(); s.Leading && s.Current {
				term = s.Term
				return true
			}
		}
		return false
	})
	return term
}

func (e *ensemble) follower() *ensembleNode {
	e.t.Helper()
	l := e.leader()
	return e.nodes[int(l.id)%len(e.nodes)]
}

func TestEnsemble_AllMembersApplyTheSame(t *testing.T) {
	for _, onDisk := range []bool{true, false} {
		t.Run(fmt.Sprintf("disk=%v", onDisk), func(t *testing.T) {
			e := newEnsemble(t, 3, onDisk)
			for _, m := range e.nodes {
				e.put(m, 100, 100)
			}
			e.converge()
		})
	}
}

func TestEnsemble_AMemberThatWasAwayCatchesUp(t *testing.T) {
	for _, tc := range []struct {
		name        string
		n, bytes    int
		disk, empty bool
	}{
		{"by log", 500, 100, true, false},
		{"by checkpoint", 1000, 20_000, true, false},
		{"by checkpoint, in memory", 1000, 20_000, false, true},
		{"with an emptied directory", 500, 100, true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := newEnsemble(t, 3, tc.disk)
			away := e.follower()
			e.put(away, 50, 100)
			away.stop()
			for range 5 {
				e.put(e.leader(), tc.n/5, tc.bytes)
			}
			if tc.empty && tc.disk {
				if err := os.RemoveAll(away.dir); err != nil {
					t.Fatal(err)
				}
			}
			away.start()
			e.put(e.leader(), 100, 100) // while it catches up
			e.converge()
			e.eventually("it votes again", func() bool {
				return slices.Contains(e.leader().n.Status().Voters, away.id) && away.n.Status().Voter
			})
			e.put(away, 100, 100)
			e.converge()
			// The entries that it caught up with are on its disk.
			if tc.disk {
				away.stop()
				away.start()
				e.converge()
			}
		})
	}
}

// A checkpoint whose transfer breaks again and again is never installed; the next complete
// checkpoint is.
func TestC4_ABrokenTransferInstallsNothing(t *testing.T) {
	e := newEnsemble(t, 3, true)
	away := e.follower()
	away.stop()
	for range 5 {
		e.put(e.leader(), 200, 20_000)
	}
	if err := os.RemoveAll(away.dir); err != nil {
		t.Fatal(err)
	}
	e.budget.Store(3 << 20)
	away.start()
	e.eventually("some transfers have broken", func() bool {
		left, err := os.ReadDir(away.dir)
		if err != nil {
			return false
		}
		for _, f := range left {
			if f.Name() == "checkpoint.db" {
				t.Fatal("half a checkpoint was installed")
			}
		}
		return away.n.checkpoints.broken.Load() >= 2
	})
	if n := len(away.list.all()); n != 0 {
		t.Fatalf("%d items of half a checkpoint", n)
	}
	e.budget.Store(0)
	e.converge()
}

// Requests of members that keep running are applied once, in order, whatever leaders do.
func TestC2_LeadersComeAndGo(t *testing.T) {
	for name, e := range map[string]*ensemble{"on disk": newEnsemble(t, 3, true), "in memory": newEnsembleInMemory(t, 3)} {
		t.Run(name, func(t *testing.T) {
			e.t = t
			for range exhaustive.Or(3, 6) {
				l := e.leader()
				other := e.nodes[int(l.id)%3]
				done := make(chan struct{})
				go func() {
					defer close(done)
					e.put(other, exhaustive.Or(1000, 2000), 100)
				}()
				l.stop()
				<-done
				l.start()
				e.converge()
			}
		})
	}
}

// newEnsembleInMemory makes an ensemble whose members each have a Memory.
func newEnsembleInMemory(t *testing.T, n int) *ensemble {
	e := newEnsemble(t, n, false)
	for _, m := range e.nodes {
		m.memory = new(Memory)
		m.stop()
	}
	for _, m := range e.nodes {
		m.list = &list{}
		m.start()
	}
	e.whole()
	return e
}

// All members end at the same time, and the ensemble continues where it stopped.
func TestMemory_OutlivesAllNodes(t *testing.T) {
	e := newEnsembleInMemory(t, 3)
	for range 4 {
		e.put(e.leader(), 100, 100)
		before := e.reign()
		for _, m := range e.nodes {
			m.stop()
		}
		for _, m := range e.nodes {
			m.start()
		}
		e.converge()
		if after := e.reign(); after <= before {
			t.Fatalf("term %d after %d: votes were forgotten", after, before)
		}
	}
}

func TestHandOver_AnotherLeadsAtOnce(t *testing.T) {
	e := newEnsemble(t, 3, false)
	l := e.leader()
	e.put(l, 10, 10)
	ctx, before := watchdog.Context(t, 5*time.Second), l.n.Status()
	l.n.HandOver(ctx, 0)
	// In a later term it may lead again: this goroutine may have stood still since.
	if s := l.n.Status(); s.Leading && s.Term == before.Term || ctx.Err() != nil {
		t.Fatalf("it still leads: %+v", s)
	}
	e.put(l, 10, 10)
	e.converge()
	ctx = watchdog.Context(t, time.Minute)
	for _, to := range e.nodes { // only a member that has all entries can take over
		for l = e.leader(); l != to && ctx.Err() == nil; l = e.leader() {
			l.n.HandOver(ctx, to.id)
		}
		if l != to {
			t.Errorf("member %d leads, want %d", l.id, to.id)
		}
	}
}

// The membership is on disk together with the knowledge that it is committed. All members stop
// right after a member was let in again. Then two of the three voters suffice, although an earlier
// entry in their logs would require the previous third voter.
func TestEnsemble_VotersAreKnownAfterAStop(t *testing.T) {
	e := newEnsemble(t, 3, true)
	e.put(e.leader(), 5, 10)
	e.converge()
	lead := e.leader()
	var emptied, other *ensembleNode
	for _, m := range e.nodes {
		if m != lead {
			emptied, other = m, emptied
		}
	}
	emptied.stop()
	emptied.dir = t.TempDir()
	emptied.start()
	e.eventually("the emptied one votes", func() bool {
		for _, m := range e.nodes {
			if s := m.n.Status(); s.Leader == 0 || len(s.Voters) != 3 {
				return false
			}
		}
		return !emptied.n.Status().Fresh
	})
	for _, m := range e.nodes {
		m.stop()
	}
	emptied.start()
	other.start()
	e.eventually("two of three have a leader", func() bool { return emptied.n.Status().Leader != 0 && other.n.Status().Leader != 0 })
}
