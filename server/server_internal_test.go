package server

import (
	"slices"
	"testing"
	"time"

	"github.com/gozkd/gozkd/server/facts"
	"github.com/gozkd/gozkd/server/internal/meter"
)

// The disk is not slow because the process stood still during a sync. Only the time before and
// after counts.
func TestSynced_Standstill(t *testing.T) {
	s, err := New(Config{InProcess: true, SyncWarning: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	now := time.Now()
	s.standstill.Note(now.Add(-8 * time.Second)) // until now
	s.synced(8*time.Second+time.Millisecond, 1, 100)
	if slow := s.meter.Counted(meter.SlowSyncs); slow != 0 {
		t.Errorf("%d slow syncs", slow)
	}
	s.synced(12*time.Second, 1, 100)
	if slow := s.meter.Counted(meter.SlowSyncs); slow != 1 {
		t.Errorf("%d slow syncs, one took 4 s without the standstill", slow)
	}
}

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
	var list facts.Values
	s.meter.AddTimes(&list)
	i := slices.IndexFunc(list, func(v facts.Value) bool { return v.Name == "sync_processor_queue_size" })
	appends := list[i].Is.(facts.Summary)
	if slow := s.meter.Counted(meter.SlowSyncs); slow != 1 || appends.Count != 3 || appends.Sum != 9 {
		t.Errorf("%d slow syncs, appends: %+v", slow, appends)
	}
}
