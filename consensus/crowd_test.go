package consensus

import "testing"

func TestCrowd(t *testing.T) {
	var c crowd
	expected := func(turns, inputs int) (n int) {
		for range turns {
			if c.expected() {
				n++
			}
			c.came(inputs)
		}
		return n
	}
	if n := expected(10*crowdMemory, 1); n != 10 {
		t.Errorf("a lone client: %d turns wait, want 10 of %d", n, 10*crowdMemory)
	}
	for range crowdMemory { // one client of many may be alone for some turns
		expected(1, 2)
		if n := expected(crowdMemory, 1); n != crowdMemory {
			t.Fatalf("after a crowd %d turns wait, want %d", n, crowdMemory)
		}
	}
	if n := expected(10*crowdMemory, 1); n != 10 {
		t.Errorf("alone again: %d turns wait, want 10 of %d", n, 10*crowdMemory)
	}
}
