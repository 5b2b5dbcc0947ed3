package consensus

import "testing"

func TestYielder(t *testing.T) {
	var y yielder
	yields := func(turns, inputs int) (n int) {
		for range turns {
			if y.shouldYield() {
				n++
			}
			y.took(inputs)
		}
		return n
	}
	if n := yields(10*yielderMemory, 1); n != 10 {
		t.Errorf("a lone client: %d turns yield, want 10 of %d", n, 10*yielderMemory)
	}
	for range yielderMemory { // one client of many may be alone for some turns
		yields(1, 2)
		if n := yields(yielderMemory, 1); n != yielderMemory {
			t.Fatalf("after a burst %d turns yield, want %d", n, yielderMemory)
		}
	}
	if n := yields(10*yielderMemory, 1); n != 10 {
		t.Errorf("alone again: %d turns yield, want 10 of %d", n, 10*yielderMemory)
	}
}
