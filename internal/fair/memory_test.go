package fair

import (
	"fmt"
	"testing"
	"time"
)

// Keys and hosts leave the memory with the last that they stand for, and a Rate keeps two
// generations of keys.
func TestMemory(t *testing.T) {
	g := NewGauge(2, 9)
	one, _ := g.Enter("a")
	two, _ := g.Enter("a")
	if one(); len(g.byKey) != 1 || g.byKey["a"] != 1 {
		t.Errorf("one of two has left: %v", g.byKey)
	}
	if two(); len(g.byKey) != 0 {
		t.Errorf("all have left: %v", g.byKey)
	}
	var p Places[int]
	p.Enter(1, "a", 9)
	p.Enter(2, "a", 9)
	if p.Leave(1); p.hosts["a"] != 1 {
		t.Errorf("one of two has left: %v", p.hosts)
	}
	if p.Leave(2); len(p.hosts) != 0 {
		t.Errorf("all have left: %v", p.hosts)
	}
	r, now := NewRate(time.Hour, 1, 4), time.Unix(0, 0)
	for _, key := range []string{"a", "b", "a", "a", "c", "d"} {
		r.Take(key, now)
	}
	if r.Wait("b", now) == 0 || r.Wait("a", now) == 0 {
		t.Errorf("of four keys only %v and %v are remembered", r.old, r.recent)
	}
	for i := range 100 {
		if r.Take(fmt.Sprint(i), now); len(r.recent) > 2 || len(r.old) > 2 {
			t.Fatalf("%d and %d keys are remembered", len(r.recent), len(r.old))
		}
	}
}

// The oldest caller of the host with most callers makes room.
func TestPlaces_WhoGoes(t *testing.T) {
	var p Places[int]
	for i, host := range []string{"a", "b", "b"} {
		if _, full := p.Enter(i, host, 3); full {
			t.Fatal("there is no room")
		}
	}
	if out, full := p.Enter(3, "c", 3); out != 1 || !full {
		t.Errorf("caller %d goes, %v", out, full)
	}
	if out, full := p.Enter(4, "d", 3); out != 0 || !full {
		t.Errorf("of hosts with a caller each, caller %d goes, %v", out, full)
	}
}
