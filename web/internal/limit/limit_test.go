package limit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/web/internal/limit"
)

func TestMain(m *testing.M) { watchdog.Watch(m).Run() }

func TestBuckets(t *testing.T) {
	now := time.Unix(0, 0)
	b := limit.New(2, 3, 10, func() time.Time { return now })
	for range 3 {
		if _, ok := b.Take("a"); !ok {
			t.Fatal("no token in a full bucket")
		}
	}
	if wait, ok := b.Take("a"); ok || wait != 500*time.Millisecond {
		t.Errorf("%v, %v", wait, ok)
	}
	if _, ok := b.Take("b"); !ok {
		t.Error("keys share a bucket")
	}
	if _, ok := b.Has("a"); ok {
		t.Error("an empty bucket has a token")
	}
	now = now.Add(500 * time.Millisecond)
	if _, ok := b.Has("a"); !ok {
		t.Error("no token after its time")
	}
	b.Take("a")
	if _, ok := b.Take("a"); ok {
		t.Error("a bucket fills too fast")
	}
	now = now.Add(-time.Hour) // the clock was set back
	if _, ok := b.Take("a"); ok {
		t.Error("a token from the past")
	}
	now = now.Add(100 * time.Hour)
	for range 3 {
		b.Take("a")
	}
	if _, ok := b.Take("a"); ok {
		t.Error("a bucket holds more than its burst")
	}
}

// Half as many keys as were asked for are remembered, whatever other keys come.
func TestBuckets_RememberLatestKeys(t *testing.T) {
	now := time.Unix(0, 0)
	b := limit.New(1e-9, 1, 20, func() time.Time { return now })
	b.Take("a")
	for i := range 10 {
		if _, ok := b.Take("a"); ok {
			t.Fatalf("forgotten after %d keys", i)
		}
		b.Take(fmt.Sprint(i))
	}
	if _, ok := b.Take("a"); ok {
		t.Error("forgotten after 10 keys")
	}
}

func TestGauge(t *testing.T) {
	g := limit.NewGauge(2, 3)
	leave, _ := g.Enter("a")
	g.Enter("a")
	if _, ok := g.Enter("a"); ok {
		t.Error("a third of one key")
	}
	g.Enter("b")
	if _, ok := g.Enter("b"); ok || g.Len() != 3 {
		t.Error("a fourth in all")
	}
	leave()
	if _, ok := g.Enter("c"); !ok {
		t.Error("no room after one has left")
	}
}
