package server

import (
	"math/rand/v2"
	"sync"
	"testing"
)

// Connections draw passwords at the same time, from a source that need not be safe for that.
func TestConfig_RandIsCalledOnceAtATime(t *testing.T) {
	cfg := Config{Rand: rand.NewChaCha8([32]byte{1})}
	if err := cfg.ensureDefaults(); err != nil {
		t.Fatal(err)
	}
	var drawing sync.WaitGroup
	for range 4 {
		drawing.Go(func() {
			var b [16]byte
			for range 1000 {
				if n, err := cfg.Rand.Read(b[:]); n != len(b) || err != nil {
					t.Errorf("%d bytes, %v", n, err)
				}
			}
		})
	}
	drawing.Wait()
}
