package server

import (
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/histogram"
)

// A sync is slow when it takes longer than the threshold.
func TestSynced_Slow(t *testing.T) {
	s, err := New(Config{InProcess: true, SyncWarning: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for _, took := range []time.Duration{0, time.Second, time.Second + 1} {
		s.synced(took, 3, 100)
	}
	if slow, d := s.meter.Log.SlowSyncs.Load(), histogram.Snapshot(&s.meter.Log.AppendsPerSync); slow != 1 || d.Count != 3 || d.Sum != 9 {
		t.Errorf("%d slow syncs, %d of %v appends", slow, d.Count, d.Sum)
	}
}
