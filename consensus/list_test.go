package consensus

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

// list is a state machine that holds all payloads in order. A Ref is a func() that is called when
// the request is applied. The key z holds length and hash of the list, so that Restore detects
// damage.
type list struct {
	mu    sync.Mutex
	items []string
	times []int64 // of all batches since the start, empty ones too
	clean int     // number of items that were captured
}

func (l *list) Apply(batches []Batch) {
	l.mu.Lock()
	var refs []func()
	for _, b := range batches {
		l.times = append(l.times, b.TimeMs)
		for _, r := range b.Requests {
			l.items = append(l.items, string(r.Payload))
			if f, ok := r.Ref.(func()); ok && f != nil {
				refs = append(refs, f)
			}
		}
	}
	l.mu.Unlock()
	for _, f := range refs {
		f()
	}
}

func (l *list) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.items)
}

type listChanges struct {
	from int
	all  []string
}

func (l *list) Capture() Changes {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := listChanges{l.clean, slices.Clone(l.items)}
	l.clean = len(l.items)
	return c
}

func (c listChanges) Len() int { return len(c.all) - c.from }

func (c listChanges) Range(put func(key, value []byte) error) error {
	for i, item := range c.all[c.from:] {
		if err := put(binary.BigEndian.AppendUint64([]byte("a"), uint64(c.from+i)), []byte(item)); err != nil {
			return err
		}
	}
	// A key that comes and goes, to test deletions.
	if err := put([]byte("b"), map[bool][]byte{true: []byte("x")}[len(c.all)%2 == 1]); err != nil {
		return err
	}
	return put([]byte("z"), listSum(c.all))
}

func listSum(items []string) []byte {
	h := fnv.New64a()
	for _, item := range items {
		_, _ = fmt.Fprintf(h, "%d:%s", len(item), item) // a hash never fails
	}
	return fmt.Appendf(nil, "%d %x", len(items), h.Sum64())
}

func (l *list) CaptureAll() Changes { return listChanges{0, l.all()} }

func (l *list) Restore(state iter.Seq2[[]byte, []byte]) (func(), error) {
	var got list
	if err := got.read(state); err != nil {
		return nil, err
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.items, l.clean = got.items, got.clean
	}, nil
}

func (l *list) read(state iter.Seq2[[]byte, []byte]) error {
	odd, sum := false, ""
	for k, v := range state {
		switch k[0] {
		case 'a':
			if len(k) != 9 || binary.BigEndian.Uint64(k[1:]) != uint64(len(l.items)) {
				return fmt.Errorf("key %x after %d items", k, len(l.items))
			}
			l.items = append(l.items, string(v))
		case 'b':
			odd = true
		case 'z':
			sum = string(v)
		default:
			return fmt.Errorf("key %x", k)
		}
	}
	if want := string(listSum(l.items)); sum != want || odd != (len(l.items)%2 == 1) {
		return fmt.Errorf("%d items have the sum %s, want %s", len(l.items), want, sum)
	}
	l.clean = len(l.items)
	return nil
}

// running is a node that runs.
type running struct {
	*Node
	list *list
	stop func() error // ends Run and returns its result
	done chan error   // capacity 1
}

// open opens and runs a node and waits until it is ready.
func open(t testing.TB, cfg Config) *running {
	t.Helper()
	r, err := tryOpen(t, cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.wait(t)
	return r
}

func tryOpen(t testing.TB, cfg Config) (*running, error) {
	t.Helper()
	l := &list{}
	cfg.StateMachine = l
	n, err := Open(cfg)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background()) // longer than t.Context, which ends before Cleanup
	r := &running{Node: n, list: l, done: make(chan error, 1)}
	go func() { r.done <- n.Run(ctx) }() // stopped and awaited by r.stop
	r.stop = sync.OnceValue(func() error {
		cancel()
		return <-r.done
	})
	t.Cleanup(func() { _ = r.stop() }) // tests that care call it themselves
	return r, nil
}

func (r *running) wait(t testing.TB) {
	t.Helper()
	select {
	case <-r.Ready():
	case err := <-r.done:
		r.done <- err // for stop
		t.Fatal("Run:", err)
	case <-watchdog.After(t, 20*time.Second):
		t.Fatal("not ready")
	}
}

// close stops a node that has not failed.
func (r *running) close(t testing.TB) {
	t.Helper()
	if err := r.stop(); !errors.Is(err, ErrClosed) {
		t.Fatal("Run:", err)
	}
}

// put proposes items and waits until all are applied.
func (r *running) put(t testing.TB, items ...string) {
	t.Helper()
	var wg sync.WaitGroup
	wg.Add(len(items))
	for _, item := range items {
		r.Propose([]byte(item), wg.Done)
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }() // ends with the last answer
	select {
	case <-done:
	case <-watchdog.After(t, 20*time.Second):
		t.Fatal("no answer")
	}
}

// load proposes items named name/1, name/2 … endlessly, depth at a time.
type load struct {
	mu       sync.Mutex
	name     string
	proposed int
	answered int
	reached  map[int]chan struct{}
}

func (r *running) load(name string, depth int) *load {
	l := &load{name: name, reached: map[int]chan struct{}{}}
	for range depth {
		l.next(r.Node)
	}
	return l
}

func (l *load) next(n *Node) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.proposed++
	n.Propose(fmt.Appendf(nil, "%s/%d", l.name, l.proposed), func() {
		l.mu.Lock()
		l.answered++
		if c := l.reached[l.answered]; c != nil {
			close(c)
		}
		l.mu.Unlock()
		l.next(n)
	})
}

func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answered
}

// until is closed when n are answered.
func (l *load) until(n int) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := make(chan struct{})
	if l.answered >= n {
		close(c)
	} else {
		l.reached[n] = c
	}
	return c
}

// reach waits until n of the load are answered.
func (r *running) reach(t testing.TB, l *load, n int) {
	t.Helper()
	select {
	case <-l.until(n):
	case <-watchdog.After(t, 20*time.Second):
		t.Fatalf("%d answered, want %d", l.count(), n)
	}
}

// checkLoads checks that items are those of the loads, in the order of the loads, each from 1 on
// without gap or repetition, and at least the answered ones.
func checkLoads(items []string, names []string, answered []int) error {
	for i, name := range names {
		n := 0
		for len(items) > 0 && strings.HasPrefix(items[0], name+"/") {
			if n++; items[0] != fmt.Sprintf("%s/%d", name, n) {
				return fmt.Errorf("%s where %s/%d should be", items[0], name, n)
			}
			items = items[1:]
		}
		if n < answered[i] {
			return fmt.Errorf("%d items of load %s, but %d were answered", n, name, answered[i])
		}
	}
	if len(items) > 0 {
		return fmt.Errorf("%s after the end", items[0])
	}
	return nil
}
