package server

import (
	"slices"
	"testing"
	"time"

	"github.com/gozkd/gozkd/server/facts"
	"github.com/gozkd/gozkd/server/internal/meter"
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
	var list facts.Values
	s.meter.AddTimes(&list)
	i := slices.IndexFunc(list, func(v facts.Value) bool { return v.Name == "sync_processor_queue_size" })
	appends := list[i].Is.(facts.Summary)
	if slow := s.meter.Counted(meter.SlowSyncs); slow != 1 || appends.Count != 3 || appends.Sum != 9 {
		t.Errorf("%d slow syncs, appends: %+v", slow, appends)
	}
}
