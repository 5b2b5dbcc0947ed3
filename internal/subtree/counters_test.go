package subtree_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/subtree"
	"github.com/gozkd/gozkd/proto"
)

// queue creates a znode whose sequence counter is creations, with a single child left.
func queue(t testing.TB, c *client.Client, path string, creations int) {
	t.Helper()
	create(t, c, client.CreateOptions{}, path)
	var ops []client.Op
	for range creations - 1 {
		ops = append(ops, client.CreateOp(path+"/gone", nil, client.CreateOptions{}), client.DeleteOp(path+"/gone", 0))
	}
	ops = append(ops, client.CreateOp(path+"/left", nil, client.CreateOptions{}))
	if _, err := c.Multi(t.Context(), ops...); err != nil {
		t.Fatal(err)
	}
}

func wantNext(t testing.TB, c *client.Client, path string, number int) {
	t.Helper()
	if got, want := nextNumber(t, c, path), fmt.Sprintf("%s/%010d", path, number); got != want {
		t.Errorf("next name %s, want %s", got, want)
	}
}

// TestCounters: exports, copies and moves keep the sequence counters of every parent, atomically if
// the creations fit into one transaction.
func TestCounters(t *testing.T) {
	c, w := start(t)
	other, _ := start(t)
	create(t, c, client.CreateOptions{}, "/app")
	queue(t, c, "/app/q", 700) // more than one multi of a Loader
	queue(t, c, "/app/q/left/deep", 3)
	create(t, c, client.CreateOptions{}, "/app/locks")
	create(t, connect(t, w), client.CreateOptions{Ephemeral: true}, "/app/locks/held") // left out
	check := func(c *client.Client, to string, locks int) {
		t.Helper()
		wantNext(t, c, to, 2)
		wantNext(t, c, to+"/q", 700)
		wantNext(t, c, to+"/q/left", 1)
		wantNext(t, c, to+"/q/left/deep", 3)
		wantNext(t, c, to+"/locks", locks)
	}
	text, _ := export(t, c, "/app")
	l := &subtree.Loader{ZK: other, To: "/in", Counters: subtree.Counters{Limit: noLimit}}
	if err := l.Load(t.Context(), bytes.NewReader(text)); err != nil || l.Counters.NBehind != 0 {
		t.Fatal(err, l.Counters)
	}
	check(other, "/in", 1)
	run := func(from, to subtree.Side, move, atomic bool) {
		t.Helper()
		work := subtree.Copy{From: from, To: to, Recursive: true, Move: move, Counters: subtree.Counters{Limit: noLimit}}
		if done, err := work.Run(t.Context()); err != nil || done.Atomic != atomic || work.Counters.NBehind != 0 {
			t.Fatal(done, err, work.Counters)
		}
	}
	run(subtree.Side{ZK: c, Path: "/app"}, subtree.Side{ZK: other, Path: "/cp"}, false, false)
	check(other, "/cp", 1)
	run(subtree.Side{ZK: c, Path: "/app"}, subtree.Side{ZK: c, Path: "/cp"}, false, true)
	run(subtree.Side{ZK: c, Path: "/cp"}, subtree.Side{ZK: c, Path: "/mv"}, true, true)
	check(c, "/mv", 1)
	// Beyond one transaction, the counters move before the source is deleted.
	queue(t, c, "/big", 7000)
	queue(t, c, "/big/left/q", 7000)
	run(subtree.Side{ZK: c, Path: "/big"}, subtree.Side{ZK: c, Path: "/big2"}, true, false)
	wantNext(t, c, "/big2", 7000)
	wantNext(t, c, "/big2/left/q", 7000)
	// Without its children a znode has a new counter.
	if _, err := (&subtree.Copy{
		From: subtree.Side{ZK: c, Path: "/big2"}, To: subtree.Side{ZK: c, Path: "/one"}, Counters: subtree.Counters{Limit: noLimit},
	}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantNext(t, c, "/one", 0)
}

// TestCounters_Limit: counters beyond the limit, or that the server refuses to move, are named.
func TestCounters_Limit(t *testing.T) {
	c, _ := start(t)
	create(t, c, client.CreateOptions{}, "/app")
	queue(t, c, "/app/a", 50)
	queue(t, c, "/app/b", 20)
	if _, err := c.SetACL(t.Context(), "/app/b", proto.ReadACL(), -1); err != nil {
		t.Fatal(err)
	}
	create(t, c, client.CreateOptions{}, "/app/c", "/app/c/x")
	if err := c.Delete(t.Context(), "/app/c/x", -1); err != nil {
		t.Fatal(err)
	}
	text, _ := export(t, c, "/app")
	open := strings.NewReplacer(`{"path":"/b/left"}`+"\n", "", `"znodes":6`, `"znodes":5`).Replace(string(text))
	l := &subtree.Loader{ZK: c, To: "/in", Counters: subtree.Counters{Limit: 21}}
	if err := l.Load(t.Context(), strings.NewReader(open)); err != nil {
		t.Fatal(err, open)
	}
	got := ""
	for _, o := range l.Counters.Behind {
		got += fmt.Sprintf("%s %d %v, ", o.Path, o.By, o.Err != nil)
	}
	if got != "/in/a 49 false, /in/b 20 true, " || l.Counters.NBehind != 2 {
		t.Error(got, l.Counters)
	}
	wantNext(t, c, "/in/a", 1)
	wantNext(t, c, "/in/c", 1)
	work := subtree.Copy{From: subtree.Side{ZK: c, Path: "/app/a"}, To: subtree.Side{ZK: c, Path: "/a2"}, Recursive: true}
	if done, err := work.Run(t.Context()); err != nil || !done.Atomic || work.Counters.NBehind != 1 {
		t.Error(done, err, work.Counters)
	}
}

// TestCounters_Existing: a counter moves to the wanted one, never beyond, and never back.
func TestCounters_Existing(t *testing.T) {
	c, _ := start(t)
	queue(t, c, "/ahead", 30)
	queue(t, c, "/behind", 4)
	const text = `{"gozkd_export":1,"root":"/","zxid":"0x1"}
{"path":"/","creations":9}
{"path":"/ahead","creations":10}
{"path":"/behind","creations":10}
{"path":"/behind/left"}
{"path":"/box","kind":"container","creations":10}
{"path":"/new","creations":2147483647}
{"path":"/old"}
{"end":true,"znodes":7}
`
	for range 2 { // the second time there is nothing to do
		l := &subtree.Loader{ZK: c, To: "/", Existing: subtree.Keep, Counters: subtree.Counters{Limit: 100}}
		if err := l.Load(t.Context(), strings.NewReader(text)); err != nil || l.Counters.NBehind != 1 || l.Counters.Behind[0].Path != "/new" {
			t.Fatal(err, l.Counters)
		}
	}
	for path, next := range map[string]int{"/ahead": 30, "/behind": 10, "/box": 0, "/new": 0, "/old": 0} {
		wantNext(t, c, path, next)
	}
	if created, _, err := c.Create(t.Context(), "/n", nil, client.CreateOptions{Sequential: true}); err != nil || created != "/n0000000009" {
		t.Error(created, err)
	}
}

// TestCounters_LostReplies: a lost reply does not move a counter twice.
func TestCounters_LostReplies(t *testing.T) {
	c, w := start(t)
	queue(t, c, "/q", 3000)
	text, _ := export(t, c, "/q")
	stop, broken := make(chan struct{}), make(chan struct{})
	l := &subtree.Loader{ZK: c, To: "/in", Counters: subtree.Counters{Limit: noLimit}}
	started := false
	l.Seen = func(*subtree.Loader) { // the znodes are written; now the counter moves
		if started {
			return
		}
		started = true
		watching := connect(t, w)
		go func() { // ends when stop is closed
			defer close(broken)
			var last int32
			for breaks := 0; breaks < 5; {
				select {
				case <-stop:
					return
				default:
				}
				stat, _, err := watching.Exists(t.Context(), "/in", false)
				if err == nil && stat.Cversion != last {
					last = stat.Cversion
					breaks++
					w.breakAll()
				}
			}
		}()
	}
	err := l.Load(t.Context(), bytes.NewReader(text))
	close(stop)
	<-broken
	if err != nil || l.Counters.NBehind != 0 {
		t.Fatal(err, l.Counters)
	}
	wantNext(t, c, "/in", 3000)
}
